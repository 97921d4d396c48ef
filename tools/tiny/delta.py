"""The fast gated delta rule, from flash-linear-attention.

One of its backward kernels is miscompiled by Triton 3.4 to 3.7.0 on Hopper GPUs, and the library refuses
to run there. That step has no recurrence, so it is replaced by batched matrix products.
"""
import torch

CHUNK = 64


def parallel_grads(q, k, v, do, h, dh, w, g, dv, scale):
    """Gradients of q, k, w and the summed log decay inside each chunk. g is in units of log 2."""
    b, t, heads, _ = q.shape
    n = t // CHUNK

    def chunks(x):
        return x.reshape(b, n, CHUNK, heads, -1).transpose(2, 3)  # [b, n, heads, chunk, dim]

    def flat(x, like):
        return x.transpose(2, 3).reshape(b, t, heads, -1).to(like.dtype)

    qc, kc, vc, doc, dvc = (chunks(x) for x in (q, k, v, do, dv))
    state, dstate = h.to(q.dtype), dh.to(q.dtype)
    gc = g.float().reshape(b, n, CHUNK, heads).transpose(2, 3)
    last = gc[..., -1]
    dw = -(dvc.to(q.dtype) @ state.mT)
    dq = (doc @ state.mT).float() * torch.exp2(gc)[..., None] * scale
    dk = (vc @ dstate.mT).float() * torch.exp2(last[..., None] - gc)[..., None]
    dlast = (h.float() * dh.float()).sum((-2, -1)) * torch.exp2(last) + (dk * kc.float()).sum((-2, -1))
    upper = torch.ones(CHUNK, CHUNK, dtype=torch.bool, device=q.device).triu(1)
    decay = torch.exp2((gc[..., :, None] - gc[..., None, :]).masked_fill(upper, float("-inf")))
    ds = ((doc @ vc.mT).float() * decay * scale).to(q.dtype)
    dq = dq + (ds @ kc).float()
    dk = dk + (ds.mT @ qc).float()
    dg = (dq * qc.float()).sum(-1) - (dk * kc.float()).sum(-1)
    dg = torch.cat([dg[..., :-1], dg[..., -1:] + dlast[..., None]], -1)
    return flat(dq, q), flat(dk, k), flat(dw, w), dg.transpose(2, 3).reshape(b, t, heads).contiguous()


def rule():
    """chunk_gated_delta_rule, repaired where that is needed."""
    from fla.ops.gated_delta_rule import chunk as library
    from fla.utils import IS_NVIDIA_HOPPER, TRITON_ABOVE_3_4_0, TRITON_ABOVE_3_7_1
    if IS_NVIDIA_HOPPER and TRITON_ABOVE_3_4_0 and not TRITON_ABOVE_3_7_1:
        compiled = torch.compile(parallel_grads, dynamic=False)

        def grads(q, k, v, do, h, dh, w, g, dv, scale, **_):
            return compiled(q, k, v, do, h, dh, w, g, dv, scale)

        library.chunk_bwd_dqkwg = grads
    return library.chunk_gated_delta_rule


def check():
    """parallel_grads against autograd on one head of two chunks, in double precision."""
    torch.manual_seed(0)
    b, n, heads, d, scale = 1, 2, 2, 16, 0.25
    t = n * CHUNK
    q, k, v, do, w, dv = (torch.randn(b, t, heads, d, dtype=torch.float64) for _ in range(6))
    h, dh = (torch.randn(b, n, heads, d, d, dtype=torch.float64) for _ in range(2))
    g = (-0.05 * torch.rand(b, n, CHUNK, heads, dtype=torch.float64)).cumsum(2).reshape(b, t, heads)
    q, k, w, g = (x.requires_grad_() for x in (q, k, w, g))
    c = lambda x: x.reshape(b, n, CHUNK, heads, -1).transpose(2, 3)
    gc = g.reshape(b, n, CHUNK, heads).transpose(2, 3)
    s = ((c(q) @ c(k).mT) * (gc[..., :, None] - gc[..., None, :]).exp()).tril() * scale
    o = (c(q) * gc.exp()[..., None]) @ h * scale + s @ c(v)
    after = h * gc[..., -1].exp()[..., None, None] + (c(k) * (gc[..., -1:] - gc).exp()[..., None]).mT @ c(v)
    loss = (o * c(do)).sum() + (after * dh).sum() - ((c(w) @ h) * c(dv)).sum()
    want = torch.autograd.grad(loss, (q, k, w, g))
    got = parallel_grads(q, k, v, do, h, dh, w, g / 0.6931471805599453, dv, scale)
    for name, x, y in zip(("q", "k", "w", "g"), got, want):
        error = ((x - y).norm() / y.norm()).item()
        print("gradient of", name, "relative error", error)
        assert error < 1e-5


if __name__ == "__main__":
    check()
