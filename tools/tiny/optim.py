"""Muon for the matrices of the layers, AdamW for the rest."""
import torch


def orthogonal(g, steps=5):
    """Newton-Schulz iteration: the nearest matrix with equal singular values, for a stack [n, rows, columns]."""
    x = g.bfloat16()
    tall = x.shape[-2] > x.shape[-1]
    x = x.mT if tall else x
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(steps):
        a = x @ x.mT
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * (a @ a)) @ x
    return x.mT if tall else x


def is_matrix(name):
    """Weights that Muon trains: not embeddings, routers, gates of one row, norms or convolutions."""
    small = ("embed_tokens", "lm_head", "norm", "mlp.gate.", "shared_expert_gate", "in_proj_a", "in_proj_b", "conv1d", "A_log", "dt_bias")
    return not any(s in name for s in small)


class Muon:
    def __init__(self, params, momentum=0.95):
        self.groups = {}
        for p in params:
            self.groups.setdefault(p.shape[-2:], []).append(p)
        self.buffers = {k: torch.zeros(sum(p.numel() // (k[0] * k[1]) for p in v), *k, device=v[0].device) for k, v in self.groups.items()}
        self.momentum = momentum

    @torch.no_grad()
    def step(self, rate, decay):
        for shape, params in self.groups.items():
            g = torch.cat([p.grad.reshape(-1, *shape) for p in params])
            buffer = self.buffers[shape]
            buffer.lerp_(g, 1 - self.momentum)
            update = orthogonal(g.lerp(buffer, self.momentum)) * max(1, shape[0] / shape[1]) ** 0.5
            at = 0
            for p in params:
                n = p.numel() // (shape[0] * shape[1])
                p.mul_(1 - rate * decay).add_(update[at:at + n].reshape(p.shape).to(p.dtype), alpha=-rate)
                at += n
