#!/usr/bin/env python3
"""Writes a GGUF of random weights in the shapes of Qwen3.6-35B-A3B: for llama.cpp what `lily synth` is for Lily.

    pip install numpy gguf
    python bench/peer_gguf.py --layers 8 --type q4_k --out FILE

Every matrix has the one type, head and embedding included: 4.5 bits a weight, as MLX 4 bits in groups of 64. Router,
shared-expert gate, convolution and norms are float32. peer_llama.py runs this with its own Python.
"""
import argparse
import os

import gguf
import numpy as np

ARCHITECTURE = "qwen35moe"
HIDDEN, VOCABULARY = 2048, 248320
HEAD, Q_HEADS, KV_HEADS = 256, 16, 2
LINEAR_HEAD, LINEAR_K_HEADS, LINEAR_V_HEADS, CONV = 128, 16, 32, 4
EXPERTS, EXPERTS_USED, EXPERT_WIDTH, SHARED_WIDTH = 256, 8, 512, 512
FULL_ATTENTION_EVERY = 4

SIGMA = 0.02  # standard deviation of a weight
CODE_SIGMA = 4.61  # of the codes 0..15, all equally likely
POOL_BYTES = 64 << 20
TYPES = {"q4_0": (gguf.GGMLQuantizationType.Q4_0, gguf.LlamaFileType.MOSTLY_Q4_0),
         "q4_k": (gguf.GGMLQuantizationType.Q4_K, gguf.LlamaFileType.MOSTLY_Q4_K_S)}

random = np.random.default_rng(1)


def half(values):
    return np.asarray(values, dtype="<f2").view(np.uint8)


def q4_0_blocks(count):
    """[count, 18] bytes: scale f16, then 32 codes; weight = scale * (code - 8)."""
    blocks = random.integers(0, 256, size=(count, 18), dtype=np.uint8)
    scales = random.uniform(0.7, 1.3, (count, 1)) * random.choice([-1.0, 1.0], (count, 1))
    blocks[:, :2] = half(scales * SIGMA / CODE_SIGMA)
    return blocks


def q4_k_blocks(count):
    """[count, 144] bytes: d and dmin f16, eight 6-bit scales and minima, 256 codes.

    weight = d * scale * code - dmin * minimum; with equal scales and minima the weights are centred.
    """
    blocks = random.integers(0, 256, size=(count, 144), dtype=np.uint8)
    scale = random.integers(40, 64, size=(count, 8), dtype=np.uint8)
    low, high = scale[:, :4], scale[:, 4:]
    d = SIGMA / CODE_SIGMA / 51.5
    blocks[:, :4] = half([d, 7.5 * d])
    blocks[:, 4:8] = blocks[:, 8:12] = low | (high >> 4) << 6
    blocks[:, 12:16] = (high & 15) | (high & 15) << 4
    return blocks


def make_pool(kind):
    """Random blocks of which every matrix is a run: as good for timing as fresh ones, and much sooner made."""
    block_bytes = gguf.GGML_QUANT_SIZES[TYPES[kind][0]][1]
    blocks = {"q4_0": q4_0_blocks, "q4_k": q4_k_blocks}[kind](POOL_BYTES // block_bytes)
    return np.ascontiguousarray(blocks)


def run_of(pool, size):
    """`size` bytes of the pool from a random block on, around its end as often as it takes."""
    start = random.integers(len(pool))
    return np.resize(np.concatenate([pool[start:], pool[:start]]), size)


def ones(shape):
    return 1 + 0.05 * random.standard_normal(shape)


def gauss(sigma):
    return lambda shape: sigma * random.standard_normal(shape)


def uniform(low, high):
    return lambda shape: random.uniform(low, high, shape)


def full_attention():
    return {"attn_q.weight": (2 * Q_HEADS * HEAD, HIDDEN), "attn_k.weight": (KV_HEADS * HEAD, HIDDEN),
            "attn_v.weight": (KV_HEADS * HEAD, HIDDEN), "attn_output.weight": (HIDDEN, Q_HEADS * HEAD),
            "attn_q_norm.weight": (ones, HEAD), "attn_k_norm.weight": (ones, HEAD)}


def linear_attention():
    keys, values = LINEAR_K_HEADS * LINEAR_HEAD, LINEAR_V_HEADS * LINEAR_HEAD
    return {"attn_qkv.weight": (2 * keys + values, HIDDEN), "attn_gate.weight": (values, HIDDEN),
            "ssm_conv1d.weight": (gauss(0.3), 2 * keys + values, CONV), "ssm_norm.weight": (ones, LINEAR_HEAD),
            # Decays of a few to many thousand tokens, as trained ones are.
            "ssm_dt.bias": (uniform(-6.9, -2.2), LINEAR_V_HEADS), "ssm_a": (uniform(-16, -1), LINEAR_V_HEADS),
            "ssm_beta.weight": (LINEAR_V_HEADS, HIDDEN), "ssm_alpha.weight": (LINEAR_V_HEADS, HIDDEN),
            "ssm_out.weight": (HIDDEN, values)}


def feed_forward():
    return {"ffn_gate_inp.weight": (gauss(SIGMA), EXPERTS, HIDDEN),
            "ffn_gate_exps.weight": (EXPERTS, EXPERT_WIDTH, HIDDEN),
            "ffn_up_exps.weight": (EXPERTS, EXPERT_WIDTH, HIDDEN),
            "ffn_down_exps.weight": (EXPERTS, HIDDEN, EXPERT_WIDTH),
            "ffn_gate_inp_shexp.weight": (gauss(SIGMA), HIDDEN),
            "ffn_gate_shexp.weight": (SHARED_WIDTH, HIDDEN),
            "ffn_up_shexp.weight": (SHARED_WIDTH, HIDDEN),
            "ffn_down_shexp.weight": (HIDDEN, SHARED_WIDTH)}


def tensors_of(layers):
    """Name to shape, rows first. A float32 tensor has the function that fills it before its shape."""
    tensors = {"token_embd.weight": (VOCABULARY, HIDDEN), "output_norm.weight": (ones, HIDDEN),
               "output.weight": (VOCABULARY, HIDDEN)}
    for layer in range(layers):
        mixer = full_attention() if (layer + 1) % FULL_ATTENTION_EVERY == 0 else linear_attention()
        norms = {"attn_norm.weight": (ones, HIDDEN), "post_attention_norm.weight": (ones, HIDDEN)}
        tensors |= {f"blk.{layer}.{name}": shape for name, shape in (norms | mixer | feed_forward()).items()}
    return tensors


def settings_of(layers):
    return {"context_length": 262144, "embedding_length": HIDDEN, "block_count": layers,
            "attention.head_count": Q_HEADS, "attention.head_count_kv": KV_HEADS, "attention.key_length": HEAD,
            "attention.value_length": HEAD, "attention.layer_norm_rms_epsilon": 1e-6,
            "expert_count": EXPERTS, "expert_used_count": EXPERTS_USED,
            "expert_feed_forward_length": EXPERT_WIDTH, "expert_shared_feed_forward_length": SHARED_WIDTH,
            "rope.dimension_count": HEAD // 4, "rope.freq_base": 1e7, "rope.dimension_sections": [11, 11, 10, 0],
            "ssm.conv_kernel": CONV, "ssm.state_size": LINEAR_HEAD, "ssm.group_count": LINEAR_K_HEADS,
            "ssm.time_step_rank": LINEAR_V_HEADS, "ssm.inner_size": LINEAR_V_HEADS * LINEAR_HEAD,
            "full_attention_interval": FULL_ATTENTION_EVERY}


def add_settings(writer, layers, file_type):
    writer.add_file_type(file_type)
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
    for name, value in settings_of(layers).items():
        add = {int: writer.add_uint32, float: writer.add_float32, list: writer.add_array}[type(value)]
        add(f"{ARCHITECTURE}.{name}", value)


def add_tokenizer(writer):
    """Names for the ids, no more: only ids are fed."""
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen35")
    writer.add_token_list([f"<t{i}>" for i in range(VOCABULARY)])
    writer.add_token_types([gguf.TokenType.NORMAL] * VOCABULARY)
    writer.add_token_merges(["a b"])
    writer.add_eos_token_id(VOCABULARY - 1)
    writer.add_add_bos_token(False)


def write(path, layers, kind):
    quantisation, file_type = TYPES[kind]
    weights, block_bytes = gguf.GGML_QUANT_SIZES[quantisation]
    writer = gguf.GGUFWriter(path, ARCHITECTURE)
    add_settings(writer, layers, file_type)
    add_tokenizer(writer)
    tensors = tensors_of(layers)
    for name, shape in tensors.items():
        if callable(shape[0]):
            writer.add_tensor_info(name, shape[1:], np.dtype(np.float32), 4 * int(np.prod(shape[1:])))
        else:
            in_bytes = (*shape[:-1], shape[-1] // weights * block_bytes)
            writer.add_tensor_info(name, in_bytes, np.dtype(np.uint8), int(np.prod(in_bytes)), raw_dtype=quantisation)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    pool = make_pool(kind)
    for shape in tensors.values():
        if callable(shape[0]):
            writer.write_tensor_data(shape[0](shape[1:]).astype(np.float32))
        else:
            writer.write_tensor_data(run_of(pool, int(np.prod(shape)) // weights * block_bytes))
    writer.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--type", choices=TYPES, default="q4_0")
    parser.add_argument("--out", required=True)
    options = parser.parse_args()
    # Under its name a file is whole.
    write(options.out + ".part", options.layers, options.type)
    os.replace(options.out + ".part", options.out)


if __name__ == "__main__":
    main()
