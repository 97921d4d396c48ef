"""The text model qwen3_5_moe for training: rows of packed documents that must not see each other.

Parameter names are those of transformers' Qwen3_5MoeForCausalLM; test_model.py proves the two equal.
Weights are passed to the layer functions as dictionaries, so that training can hand in quantised ones.
"""
import torch
import torch.nn.functional as F
from transformers.models.qwen3_5_moe.modeling_qwen3_5_moe import torch_chunk_gated_delta_rule

import delta

CONFIG = dict(hidden_size=256, num_hidden_layers=8, num_attention_heads=8, num_key_value_heads=1, head_dim=256,
              linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=128, linear_value_head_dim=128,
              linear_conv_kernel_dim=4, num_experts=32, num_experts_per_tok=4, moe_intermediate_size=128,
              shared_expert_intermediate_size=128, vocab_size=8192, rms_norm_eps=1e-6, full_attention_interval=4)
FORGET = -30.0  # log decay at a document's first token: the state before it is gone


def shapes(c):
    """Name -> shape of every parameter."""
    h, e, m, s = c["hidden_size"], c["num_experts"], c["moe_intermediate_size"], c["shared_expert_intermediate_size"]
    k, v = c["linear_num_key_heads"] * c["linear_key_head_dim"], c["linear_num_value_heads"] * c["linear_value_head_dim"]
    heads, d = c["linear_num_value_heads"], c["head_dim"]
    out = {"model.embed_tokens.weight": (c["vocab_size"], h), "lm_head.weight": (c["vocab_size"], h), "model.norm.weight": (h,)}
    for i in range(c["num_hidden_layers"]):
        p = f"model.layers.{i}."
        out |= {p + "input_layernorm.weight": (h,), p + "post_attention_layernorm.weight": (h,), p + "mlp.gate.weight": (e, h),
                p + "mlp.experts.gate_up_proj": (e, 2 * m, h), p + "mlp.experts.down_proj": (e, h, m),
                p + "mlp.shared_expert.gate_proj.weight": (s, h), p + "mlp.shared_expert.up_proj.weight": (s, h),
                p + "mlp.shared_expert.down_proj.weight": (h, s), p + "mlp.shared_expert_gate.weight": (1, h)}
        if full(c, i):
            q, kv = c["num_attention_heads"] * d, c["num_key_value_heads"] * d
            out |= {p + "self_attn.q_proj.weight": (2 * q, h), p + "self_attn.k_proj.weight": (kv, h), p + "self_attn.v_proj.weight": (kv, h),
                    p + "self_attn.o_proj.weight": (h, q), p + "self_attn.q_norm.weight": (d,), p + "self_attn.k_norm.weight": (d,)}
        else:
            out |= {p + "linear_attn.in_proj_qkv.weight": (2 * k + v, h), p + "linear_attn.in_proj_z.weight": (v, h),
                    p + "linear_attn.in_proj_a.weight": (heads, h), p + "linear_attn.in_proj_b.weight": (heads, h),
                    p + "linear_attn.conv1d.weight": (2 * k + v, 1, c["linear_conv_kernel_dim"]), p + "linear_attn.A_log": (heads,),
                    p + "linear_attn.dt_bias": (heads,), p + "linear_attn.norm.weight": (c["linear_value_head_dim"],),
                    p + "linear_attn.out_proj.weight": (h, v)}
    return out


def full(c, i):
    return (i + 1) % c["full_attention_interval"] == 0


def init(c, device="cpu", seed=0):
    """Fresh fp32 parameters."""
    g = torch.Generator().manual_seed(seed)
    out = {}
    for name, shape in shapes(c).items():
        if name.endswith("linear_attn.norm.weight"):
            t = torch.ones(shape)
        elif name.endswith("norm.weight"):
            t = torch.zeros(shape)  # stored as w of (1 + w)
        elif name.endswith("A_log"):
            t = torch.empty(shape).uniform_(0.5, 8, generator=g).log()
        elif name.endswith("dt_bias"):  # so that softplus gives 0.001 to 0.1
            dt = torch.exp(torch.rand(shape, generator=g) * 4.6 - 6.9)
            t = dt + torch.log(-torch.expm1(-dt))
        elif "conv1d" in name:
            t = torch.randn(shape, generator=g) * 0.3
        else:
            std = 0.5 if "embed_tokens" in name else 0.02 if "lm_head" in name else 0.6 * shape[-1] ** -0.5
            if name.endswith(("o_proj.weight", "out_proj.weight", "down_proj.weight", "down_proj")):
                std *= 0.3
            t = torch.randn(shape, generator=g) * std
        out[name] = t.to(device)
    return out


def norm(x, w, eps=1e-6):
    y = x.float()
    y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + eps)
    return (y * (1.0 + w.float())).to(x.dtype)


def delta_inputs(x, same, first, w, c):
    """Everything before the delta rule. same[:, j] says that the token j + 1 back is of this document."""
    b, t, _ = x.shape
    h = norm(x, w["input_layernorm.weight"])
    qkv = h @ w["linear_attn.in_proj_qkv.weight"].t()
    taps = w["linear_attn.conv1d.weight"].squeeze(1).float()
    y = qkv.float() * taps[:, -1]
    for j in range(1, taps.shape[1]):
        past = F.pad(qkv, (0, 0, j, 0))[:, :t].float()
        y = y + past * same[:, j - 1, :, None] * taps[:, -1 - j]
    y = F.silu(y).to(x.dtype)
    hk, hv = c["linear_num_key_heads"], c["linear_num_value_heads"]
    k = hk * c["linear_key_head_dim"]
    q, key, v = y.split([k, k, y.shape[-1] - 2 * k], -1)
    q = q.reshape(b, t, hk, -1).repeat_interleave(hv // hk, 2)
    key = key.reshape(b, t, hk, -1).repeat_interleave(hv // hk, 2)
    v = v.reshape(b, t, hv, -1)
    beta = torch.sigmoid(h @ w["linear_attn.in_proj_b.weight"].t())
    a = (h @ w["linear_attn.in_proj_a.weight"].t()).float()
    g = -w["linear_attn.A_log"].float().exp() * F.softplus(a + w["linear_attn.dt_bias"].float())
    g = torch.where(first[..., None], torch.full_like(g, FORGET), g)
    z = h @ w["linear_attn.in_proj_z.weight"].t()
    return q, key, v, g, beta, z


def delta_output(x, o, z, w):
    b, t, heads, d = o.shape
    y = o.float()
    y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6) * w["linear_attn.norm.weight"].float()
    y = (y * F.silu(z.reshape(b, t, heads, d).float())).to(x.dtype).reshape(b, t, -1)
    return moe(x + y @ w["linear_attn.out_proj.weight"].t(), w)


def rope(x, cos, sin):
    r = cos.shape[-1]
    a, rest = x[..., :r], x[..., r:]
    half = torch.cat([-a[..., r // 2:], a[..., :r // 2]], -1)
    return torch.cat([a * cos + half * sin, rest], -1)


def rope_tables(t, device, dim=64, theta=1e7):
    inv = theta ** (-torch.arange(0, dim, 2, device=device).float() / dim)
    angle = torch.outer(torch.arange(t, device=device).float(), inv)
    angle = torch.cat([angle, angle], -1)
    return angle.cos(), angle.sin()


def attention(x, mask, cos, sin, w, c):
    b, t, _ = x.shape
    heads, kv, d = c["num_attention_heads"], c["num_key_value_heads"], c["head_dim"]
    h = norm(x, w["input_layernorm.weight"])
    q, gate = (h @ w["self_attn.q_proj.weight"].t()).reshape(b, t, heads, 2 * d).chunk(2, -1)
    k = (h @ w["self_attn.k_proj.weight"].t()).reshape(b, t, kv, d)
    v = (h @ w["self_attn.v_proj.weight"].t()).reshape(b, t, kv, d)
    q, k = norm(q, w["self_attn.q_norm.weight"]), norm(k, w["self_attn.k_norm.weight"])
    q, k, v = (y.transpose(1, 2) for y in (q, k, v))
    q, k = rope(q, cos.to(q.dtype), sin.to(q.dtype)), rope(k, cos.to(k.dtype), sin.to(k.dtype))
    k, v = k.repeat_interleave(heads // kv, 1), v.repeat_interleave(heads // kv, 1)
    o = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    o = o.transpose(1, 2).reshape(b, t, -1) * torch.sigmoid(gate.reshape(b, t, -1))
    return moe(x + o @ w["self_attn.o_proj.weight"].t(), w)


def moe(x, w, top=4):
    """Adds the experts' output; also returns the load-balance loss.

    All experts run on all tokens and the weights of those not chosen are zero: at this size that costs
    less than gathering the rows of each expert.
    """
    h = norm(x, w["post_attention_layernorm.weight"])
    p = torch.softmax((h @ w["mlp.gate.weight"].t()).float(), -1)
    chosen = p.topk(top, -1)
    mix = torch.zeros_like(p).scatter(-1, chosen.indices, chosen.values / chosen.values.sum(-1, keepdim=True))
    gate_up, down = w["mlp.experts.gate_up_proj"], w["mlp.experts.down_proj"]
    e, m2, d = gate_up.shape
    y = (h @ gate_up.reshape(e * m2, d).t()).reshape(*h.shape[:-1], e, m2)
    y = F.silu(y[..., :m2 // 2].float()) * y[..., m2 // 2:].float() * mix[..., None]
    y = y.to(x.dtype).reshape(*h.shape[:-1], -1) @ down.transpose(1, 2).reshape(-1, d)
    s = F.silu(h @ w["mlp.shared_expert.gate_proj.weight"].t()) * (h @ w["mlp.shared_expert.up_proj.weight"].t())
    s = s @ w["mlp.shared_expert.down_proj.weight"].t()
    y = y + torch.sigmoid(h @ w["mlp.shared_expert_gate.weight"].t()) * s
    share = (mix > 0).float().flatten(0, -2).mean(0) / top
    balance = e * (share * p.flatten(0, -2).mean(0)).sum()
    return x + y, balance


class Model:
    """Runs the layers; fast=True compiles them and uses the Triton delta rule of flash-linear-attention."""

    def __init__(self, config, fast=False):
        self.c = config
        self.rule = torch_chunk_gated_delta_rule
        wrap = (lambda f: torch.compile(f, dynamic=False)) if fast else (lambda f: f)
        self.inputs, self.output, self.attention = wrap(delta_inputs), wrap(delta_output), wrap(attention)
        self.head = wrap(self.loss_head)
        if fast:
            self.rule = delta.rule()
        self.layers = range(config["num_hidden_layers"])

    def hidden(self, w, ids, doc):
        """ids and doc (document number of each token) are [rows, tokens]; w maps names to weights."""
        b, t = ids.shape
        # w["model.embed_tokens.weight"] has the working precision
        x = F.embedding(ids, w["model.embed_tokens.weight"])
        first = torch.ones_like(doc, dtype=torch.bool)
        first[:, 1:] = doc[:, 1:] != doc[:, :-1]
        same = torch.stack([F.pad(doc, (j, 0), value=-1)[:, :t] == doc for j in (1, 2, 3)], 1)
        mask = (doc[:, None, :, None] == doc[:, None, None, :]).tril()
        cos, sin = rope_tables(t, ids.device)
        balance = 0.0
        for i in self.layers:
            p = f"model.layers.{i}."
            lw = {k[len(p):]: v for k, v in w.items() if k.startswith(p)}
            if full(self.c, i):
                x, aux = self.attention(x, mask, cos, sin, lw, self.c)
            else:
                q, k, v, g, beta, z = self.inputs(x, same, first, lw, self.c)
                o, _ = self.rule(q, k, v, g=g, beta=beta, use_qk_l2norm_in_kernel=True)
                x, aux = self.output(x, o, z, lw)
            balance = balance + aux
        return x, balance / len(self.layers)

    @staticmethod
    def loss_head(x, w_norm, w_head, target, weight):
        logits = (norm(x, w_norm) @ w_head.t()).float()
        loss = F.cross_entropy(logits.flatten(0, 1), target.flatten(), reduction="none")
        weight = weight.flatten()
        # the loss that is reported counts only what the assistant says
        said = (weight == 1).float()
        return (loss * weight).sum() / weight.sum(), (loss.detach() * said).sum() / said.sum().clamp(min=1)

    def loss(self, w, ids, doc, weight):
        x, balance = self.hidden(w, ids[:, :-1], doc[:, :-1])
        loss, said = self.head(x, w["model.norm.weight"], w["lm_head.weight"], ids[:, 1:], weight[:, 1:])
        return loss, said, balance

    def logits(self, w, ids, doc=None):
        x, _ = self.hidden(w, ids, torch.zeros_like(ids) if doc is None else doc)
        return (norm(x, w["model.norm.weight"]) @ w["lm_head.weight"].t()).float()
