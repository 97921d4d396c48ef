"""Trains the tiny model and writes its 4-bit export.

    python train.py --words build/words.tsv --model models/tiny --out build/export --tokens 400e6
The length is given in tokens or in minutes; the schedule follows whichever is reached first.
"""
import argparse
import os
import time

import torch

import data
import model as M
import quant
from optim import Muon, is_matrix


def arguments():
    ap = argparse.ArgumentParser()
    ap.add_argument("--words", required=True)
    ap.add_argument("--model", required=True, help="folder with tokenizer.json and chat_template.jinja")
    ap.add_argument("--out", required=True, help="folder for config.json and model.safetensors")
    ap.add_argument("--tokens", type=float, default=1e18)
    ap.add_argument("--minutes", type=float, default=1e9, help="time for the whole run, compilation included")
    ap.add_argument("--rows", type=int, default=32)
    ap.add_argument("--length", type=int, default=1024)
    ap.add_argument("--muon", type=float, default=0.01, help="learning rate of the matrices")
    ap.add_argument("--adam", type=float, default=0.002, help="learning rate of everything else")
    ap.add_argument("--decay", type=float, default=0.02, help="weight decay of the matrices")
    ap.add_argument("--hold", type=float, default=0.35, help="share of the training before the rate falls")
    ap.add_argument("--quantise", type=float, default=0.6, help="share of the training before the weights are quantised")
    ap.add_argument("--balance", type=float, default=0.01, help="weight of the load-balance loss")
    ap.add_argument("--workers", type=int, default=14)
    ap.add_argument("--start", help="folder with an export to continue from")
    ap.add_argument("--saves", default="0.7,0.85", help="shares of the training at which an export is written too")
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--small", action="store_true", help="a miniature, to try the pipeline on a CPU")
    return ap.parse_args()


class Progress:
    """How far the training is, in [0, 1]; time counts after the first steps, which compile."""

    def __init__(self, tokens, minutes, skip):
        self.tokens, self.end, self.skip = tokens, time.time() + minutes * 60, skip
        self.started = None

    def share(self, step, seen):
        if step == self.skip:
            self.started = time.time()
        used = (time.time() - self.started) / (self.end - self.started) if self.started else 0.0
        return min(1.0, max(seen / self.tokens, used))


def rate(share, step, hold):
    """Warm-up, a plateau, a linear fall to almost nothing."""
    fall = 1.0 if share < hold else max(0.0, (1.0 - share) / (1.0 - hold))
    return min(1.0, (step + 1) / 200) * max(fall, 0.005)


class Trainer:
    def __init__(self, args):
        self.args = args
        self.cuda = torch.cuda.is_available()
        self.device = "cuda" if self.cuda else "cpu"
        self.c = dict(M.CONFIG, num_hidden_layers=4, num_experts=8) if args.small else dict(M.CONFIG)
        first = quant.load(args.start, M.shapes(self.c)) if args.start else M.init(self.c, seed=args.seed)
        self.params = {k: v.to(self.device).requires_grad_() for k, v in first.items()}
        self.net = M.Model(self.c, fast=self.cuda)
        self.muon = Muon([p for k, p in self.params.items() if is_matrix(k)])
        self.adam = torch.optim.AdamW([p for k, p in self.params.items() if not is_matrix(k)], lr=args.adam,
                                      betas=(0.9, 0.98), eps=1e-10, weight_decay=0.0, fused=self.cuda)
        self.working = torch.compile(quant.working, dynamic=False) if self.cuda else quant.working

    def step(self, batch, factor, quantise):
        """One update; the loss stays on the device so that nothing waits for it."""
        ids, doc, weight = (x.to(self.device, non_blocking=True) for x in batch)
        w = self.working(self.params, quantise, torch.bfloat16 if self.cuda else torch.float32)
        loss, said, balance = self.net.loss(w, ids, doc, weight)
        (loss + self.args.balance * balance).backward()
        small = [p for k, p in self.params.items() if not is_matrix(k)]
        torch.nn.utils.clip_grad_norm_(small, 1.0)
        for group in self.adam.param_groups:
            group["lr"] = self.args.adam * factor
        self.adam.step()
        self.muon.step(self.args.muon * factor, self.args.decay)
        for p in self.params.values():
            p.grad = None
        return said.detach(), balance.detach()

    def save(self):
        """Replaces the export in one move, so that a reader never sees half of it."""
        tok = data.Tokenizer.from_file(os.path.join(self.args.model, "tokenizer.json"))
        part = self.args.out.rstrip("/") + ".part"
        quant.export(self.params, self.c, part, tok.token_to_id("<|im_end|>"), tok.token_to_id("<|endoftext|>"))
        os.makedirs(self.args.out, exist_ok=True)
        for name in os.listdir(part):
            os.replace(os.path.join(part, name), os.path.join(self.args.out, name))

    def run(self):
        args = self.args
        stream = data.loader(args.words, os.path.join(args.model, "tokenizer.json"), args.rows, args.length + 1, args.seed, args.workers)
        progress = Progress(args.tokens, args.minutes, 12 if self.cuda else 0)
        saves = sorted(float(s) for s in args.saves.split(",") if s)
        seen, mean, clock, mark, compiled = 0, None, time.time(), 0, None
        for step, batch in enumerate(stream):
            share = progress.share(step, seen)
            if share >= 1.0:
                break
            # while the clock stands still, both forms of the step get compiled
            quantise = share >= args.quantise or step in (5, 6)
            said, balance = self.step(batch, rate(share, step, args.hold), quantise)
            seen += args.rows * args.length
            mean = said if mean is None else mean.lerp(said, 0.05)
            if step in (0, 12):
                mark, clock = seen, time.time()
            if step % 100 == 0 and step > 12 or args.small:
                loss = mean.item()  # waits for the device
                speed = (seen - mark) / (time.time() - clock)
                print(f"step {step} share {share:.3f} tokens {seen / 1e6:.1f}M loss {loss:.4f} balance {balance.item():.3f} "
                      f"{speed:.0f} tokens/s quantised {int(quantise)}", flush=True)
                mark, clock = seen, time.time()
            if saves and share >= saves[0]:
                saves.pop(0)
                self.save()
        self.save()
        print(f"done: {step} steps, {seen} tokens, last loss {mean.item():.4f}", flush=True)


if __name__ == "__main__":
    torch.set_float32_matmul_precision("high")
    Trainer(arguments()).run()
