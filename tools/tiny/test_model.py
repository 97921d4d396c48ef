"""Proves model.py equal to transformers, documents in a row independent, and the export lossless.

    python test_model.py [folder with config.json, model.safetensors and reference.safetensors]
"""
import json
import sys
import tempfile

import torch
from safetensors.torch import load_file
from transformers import Qwen3_5MoeForCausalLM, Qwen3_5MoeTextConfig

import model as M
import quant


def small():
    return dict(M.CONFIG, num_hidden_layers=4, num_experts=8, vocab_size=512)


def hf(c, params):
    """Transformers' model with our weights."""
    rope = {"rope_type": "default", "rope_theta": 1e7, "partial_rotary_factor": 0.25, "mrope_section": [11, 11, 10], "mrope_interleaved": True}
    keys = {k: v for k, v in c.items() if k != "full_attention_interval"}
    kinds = ["full_attention" if M.full(c, i) else "linear_attention" for i in range(c["num_hidden_layers"])]
    net = Qwen3_5MoeForCausalLM(Qwen3_5MoeTextConfig(rope_parameters=rope, layer_types=kinds, tie_word_embeddings=False, **keys)).eval()
    missing = net.load_state_dict(params, strict=True)
    assert not missing.missing_keys
    return net


def close(a, b, what, limit=1e-4):
    error = ((a - b).norm() / b.norm()).item()
    print(f"{what}: relative error {error:.1e}")
    assert error < limit, what


@torch.no_grad()
def main():
    c = small()
    params = M.init(c, seed=3)
    for name, p in params.items():
        if "norm" in name:
            p += 0.1 * torch.randn_like(p)
    net = M.Model(c)
    ids = torch.randint(0, 512, (2, 150))
    ours = net.logits(params, ids)
    close(ours, hf(c, params)(input_ids=ids).logits, "transformers")

    one, two = ids[:1, :70], ids[1:, :80]
    row = torch.cat([one, two], 1)
    doc = torch.tensor([[0] * 70 + [1] * 80])
    both = torch.cat([net.logits(params, one), net.logits(params, two)], 1)
    close(net.logits(params, row, doc), both, "packed documents")

    with tempfile.TemporaryDirectory() as folder:
        quant.export(params, c, folder, 500, 498)
        back = quant.load(folder, M.shapes(c))
    fake = quant.working(params, True, torch.float32)
    for name in params:
        close(back[name], fake[name], "export of " + name, 1e-6) if "layers" not in name else None
        assert torch.allclose(back[name], fake[name], atol=1e-6), name
    close(net.logits(back, ids), net.logits(fake, ids), "export")
    if len(sys.argv) > 1:
        oracle(sys.argv[1])


def oracle(folder):
    with open(folder + "/config.json", encoding="utf-8") as f:
        text = json.load(f)["text_config"]
    c = {k: text[k] for k in M.CONFIG}
    params = quant.load(folder, M.shapes(c))
    want = load_file(folder + "/reference.safetensors")
    got = M.Model(c).logits(params, want["input_ids"].long()[None])[0]
    close(got, want["logits"], "oracle")


if __name__ == "__main__":
    main()
