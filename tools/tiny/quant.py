"""The MLX affine quantisation: for training (straight-through), for the export, and back."""
import json
import os

import torch
from safetensors.torch import load_file, save_file

GROUP = 64


def bits_of(name):
    """Bits of a weight, 0 if it stays bf16. Names as in transformers."""
    if name.endswith(("mlp.gate.weight", "mlp.shared_expert_gate.weight")):
        return 8
    if "norm" in name or name.endswith(("A_log", "dt_bias")) or "conv1d" in name:
        return 0
    return 4


def affine(w, bits):
    """Integers, scales and biases of w [..., columns], as mlx.core.quantize computes them, scales in bf16."""
    x = w.float().reshape(*w.shape[:-1], -1, GROUP)
    top = 2 ** bits - 1
    lo, hi = x.amin(-1), x.amax(-1)
    anchor_low = lo.abs() > hi.abs()  # the edge of larger magnitude is kept exactly
    scale = ((hi - lo) / top).clamp(min=1e-7)
    scale = torch.where(anchor_low, scale, -scale)
    edge = torch.where(anchor_low, lo, hi)
    q0 = torch.round(edge / scale)
    scale = torch.where(q0 != 0, edge / torch.where(q0 != 0, q0, torch.ones_like(q0)), scale).bfloat16().float()
    bias = torch.where(q0 != 0, edge, torch.zeros_like(edge)).bfloat16().float()
    q = torch.round((x - bias[..., None]) / scale[..., None]).clamp(0, top)
    return q, scale, bias


def rounded(w, bits, shift=False):
    """w after a trip through the export format."""
    if bits == 0:
        return (w + 1).bfloat16().float() - 1 if shift else w.bfloat16().float()
    q, scale, bias = affine(w, bits)
    return (q * scale[..., None] + bias[..., None]).reshape(w.shape)


def is_shifted(name):
    """Norms that are stored as 1 + w."""
    return name.endswith("norm.weight") and not name.endswith("linear_attn.norm.weight")


def working(params, quantise, dtype):
    """The weights for one step: quantised or not, in the working precision; gradients pass straight through."""
    out = {}
    for name, w in params.items():
        if quantise:
            w = w + (rounded(w.detach(), bits_of(name), is_shifted(name)) - w.detach())
        small = w.dim() == 1 or "conv1d" in name
        out[name] = w if small else w.to(dtype)
    return out


def pack(q, bits):
    """Integers [..., columns] to 32-bit words, the first element in the lowest bits."""
    q = q.reshape(*q.shape[:-1], -1, 32 // bits).to(torch.int64)
    shift = torch.arange(0, 32, bits)
    words = (q << shift).sum(-1)
    return words.to(torch.uint32)


def unpack(words, bits):
    shift = torch.arange(0, 32, bits)
    q = (words.to(torch.int64)[..., None] >> shift) & (2 ** bits - 1)
    return q.flatten(-2).float()


def mlx_names(params):
    """Parameters under their MLX names: experts split into gate and up, everything below language_model."""
    for name, w in params.items():
        base = "language_model." + name
        if name.endswith("gate_up_proj"):
            stem = base[:-len("experts.gate_up_proj")] + "switch_mlp."
            gate, up = w.chunk(2, 1)
            yield stem + "gate_proj.weight", gate, 4
            yield stem + "up_proj.weight", up, 4
        elif name.endswith("experts.down_proj"):
            yield base.replace("experts.down_proj", "switch_mlp.down_proj.weight"), w, 4
        else:
            yield base, w, bits_of(name)


def tensors(params):
    """The export's tensors."""
    out = {}
    for name, w, bits in mlx_names({k: v.detach().float().cpu() for k, v in params.items()}):
        if bits:
            q, scale, bias = affine(w, bits)
            stem = name[:-len("weight")]
            out[name] = pack(q.reshape(w.shape), bits).contiguous()
            out[stem + "scales"], out[stem + "biases"] = scale.bfloat16(), bias.bfloat16()
        elif "conv1d" in name:
            out[name] = w.transpose(1, 2).bfloat16().contiguous()  # [channels, taps, 1]
        else:
            out[name] = (w + 1 if is_shifted(name) else w).bfloat16()
    return out


def config_json(c, eos, pad):
    layers = c["num_hidden_layers"]
    quant = {"group_size": GROUP, "bits": 4, "mode": "affine"}
    for i in range(layers):
        for gate in ("gate", "shared_expert_gate"):
            quant[f"language_model.model.layers.{i}.mlp.{gate}"] = {"group_size": GROUP, "bits": 8}
    kinds = ["full_attention" if (i + 1) % c["full_attention_interval"] == 0 else "linear_attention" for i in range(layers)]
    text = {"attention_bias": False, "attention_dropout": 0.0, "attn_output_gate": True, "dtype": "bfloat16", "eos_token_id": pad,
            "hidden_act": "silu", "initializer_range": 0.02, "layer_types": kinds, "mamba_ssm_dtype": "float32",
            "max_position_embeddings": 8192, "model_type": "qwen3_5_moe_text", "partial_rotary_factor": 0.25,
            "rope_parameters": {"mrope_interleaved": True, "mrope_section": [11, 11, 10], "partial_rotary_factor": 0.25,
                                "rope_theta": 10000000.0, "rope_type": "default"},
            "router_aux_loss_coef": 0.001, "tie_word_embeddings": False, "use_cache": True, **c}
    return {"architectures": ["Qwen3_5MoeForConditionalGeneration"], "eos_token_id": [eos, pad], "model_type": "qwen3_5_moe",
            "pad_token_id": pad, "quantization": quant, "quantization_config": quant, "text_config": dict(sorted(text.items())),
            "tie_word_embeddings": False}


def export(params, config, folder, eos, pad):
    os.makedirs(folder, exist_ok=True)
    save_file(tensors(params), os.path.join(folder, "model.safetensors"), metadata={"format": "mlx"})
    generation = {"do_sample": False, "eos_token_id": [eos, pad], "pad_token_id": pad, "temperature": 0.0}
    for name, value in (("config.json", config_json(config, eos, pad)), ("generation_config.json", generation)):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
            json.dump(value, f, indent=2)
            f.write("\n")


def load(folder, names):
    """The exported weights, dequantised to fp32, under the transformers names given."""
    stored = load_file(os.path.join(folder, "model.safetensors"))

    def weight(name):
        w = stored[name]
        if w.dtype != torch.uint32:
            return w.float()
        scale, bias = (stored[name[:-len("weight")] + s].float() for s in ("scales", "biases"))
        bits = 32 * w.shape[-1] // (scale.shape[-1] * GROUP)
        q = unpack(w, bits).reshape(*scale.shape, GROUP)
        return (q * scale[..., None] + bias[..., None]).flatten(-2)

    out = {}
    for name in names:
        base = "language_model." + name
        if name.endswith("gate_up_proj"):
            stem = base[:-len("experts.gate_up_proj")] + "switch_mlp."
            out[name] = torch.cat([weight(stem + "gate_proj.weight"), weight(stem + "up_proj.weight")], 1)
        elif name.endswith("experts.down_proj"):
            out[name] = weight(base.replace("experts.down_proj", "switch_mlp.down_proj.weight"))
        elif "conv1d" in name:
            out[name] = weight(base).transpose(1, 2)
        else:
            out[name] = weight(base) - (1 if is_shifted(name) else 0)
    return out
