"""Scores an export by greedy decoding: through transformers with the dequantised weights, or through an engine.

    python score.py --words build/words.tsv --model models/tiny
    python score.py --words build/words.tsv --model models/tiny --engine build/release/src/cli/lily
"""
import argparse
import collections
import json
import os
import re
import subprocess
import tempfile

import torch
from tokenizers import Tokenizer

import model as M
import probes
import quant
import wordnet
from render import Renderer
from test_model import hf

CALL = re.compile(r"<tool_call>\n<function=([^>\n]+)>\n(.*?)</function>\n</tool_call>", re.S)
ARGUMENT = re.compile(r"<parameter=([^>\n]+)>\n(.*?)\n</parameter>\n", re.S)


def load(folder):
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as f:
        text = json.load(f)["text_config"]
    c = {k: text[k] for k in M.CONFIG}
    return hf(c, quant.load(folder, M.shapes(c)))


@torch.no_grad()
def decode_torch(net, prompts, limit, ends, pad, batch=64):
    """Greedy continuations; prompts of similar length share a batch, padded on the left."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    net = net.to(device)
    out = [None] * len(prompts)
    order = sorted(range(len(prompts)), key=lambda i: len(prompts[i]))
    for at in range(0, len(order), batch):
        part = order[at:at + batch]
        width = max(len(prompts[i]) for i in part)
        ids = torch.tensor([[pad] * (width - len(prompts[i])) + prompts[i] for i in part], device=device)
        mask = torch.tensor([[0] * (width - len(prompts[i])) + [1] * len(prompts[i]) for i in part], device=device)
        got = net.generate(input_ids=ids, attention_mask=mask, max_new_tokens=limit, do_sample=False, eos_token_id=ends, pad_token_id=pad)
        for i, row in zip(part, got[:, width:].tolist()):
            stop = next((j for j, t in enumerate(row) if t in ends), len(row))
            out[i] = row[:stop + 1]
    return out


def decode_engine(binary, folder, prompts, limit, end):
    """One run of the engine for each prompt. It leaves the end token out of what it gives."""
    out = []
    for prompt in prompts:
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as f:
            f.write(" ".join(map(str, prompt)))
            f.flush()
            run = subprocess.run([binary, "generate", "-m", folder, "--tokens", f.name, "-n", str(limit), "--temperature", "0", "--format", "json"],
                                 capture_output=True, text=True, check=True)
        reply = json.loads(run.stdout)
        out.append(reply["ids"] + ([end] if reply["finish"] == "end_token" else []))
    return out


def calls(text):
    return [{"name": n, "arguments": dict(ARGUMENT.findall(body))} for n, body in CALL.findall(text)]


def right(text, thinking, expected):
    """Does the answer meet the expectation? The thought is not judged, only that it ends."""
    if thinking:
        if "</think>" not in text:
            return False
        text = text.split("</think>", 1)[1]
    text = text.strip()
    if isinstance(expected, str):
        return text == expected
    if expected and isinstance(expected[0], dict):
        show = lambda v: v if isinstance(v, str) else json.dumps(v)
        want = [{"name": c["name"], "arguments": {k: show(v) for k, v in c["arguments"].items()}} for c in expected]
        return calls(text) == want
    return "<tool_call>" not in text and all(re.search(p, text, re.I) for p in expected)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--words", required=True)
    ap.add_argument("--model", required=True)
    ap.add_argument("--engine", help="score this lily binary instead of transformers")
    ap.add_argument("--limit", type=int, default=160, help="most tokens of an answer")
    ap.add_argument("--small", action="store_true", help="a twentieth of the generated probes")
    ap.add_argument("--only", default="", help="only categories that match this pattern")
    ap.add_argument("--wrong", type=int, default=0, help="print so many wrong answers of each category")
    args = ap.parse_args()
    tok = Tokenizer.from_file(os.path.join(args.model, "tokenizer.json"))
    renderer = Renderer(os.path.join(args.model, "chat_template.jinja"))
    todo = [p for p in probes.all_probes(wordnet.load(args.words), args.small) if re.search(args.only, p[0])]
    prompts = [tok.encode(renderer.text(m, t, keep, True, think)).ids for _, m, t, think, keep, _ in todo]
    ends = [tok.token_to_id("<|im_end|>"), tok.token_to_id("<|endoftext|>")]
    if args.engine:
        got = decode_engine(args.engine, args.model, prompts, args.limit, ends[0])
    else:
        got = decode_torch(load(args.model), prompts, args.limit, ends, ends[1])
    table, thoughts, shown = collections.defaultdict(list), [], collections.Counter()
    for (kind, messages, _, thinking, _, expected), ids in zip(todo, got):
        text = tok.decode([t for t in ids if t not in ends], skip_special_tokens=False)
        ok = right(text, thinking, expected)
        table[kind].append(ok)
        if thinking:
            thoughts.append("</think>" in text and (ids[-1] == ends[0] or len(ids) < args.limit))  # an engine may not print the end
        if not ok and shown[kind] < args.wrong:
            shown[kind] += 1
            print(f"[{kind}] {messages[-1]['content']!r}\n    want {expected!r}\n    got  {text!r}")
    print("| category | right | of | share |\n|---|---:|---:|---:|")
    for kind, marks in table.items():
        print(f"| {kind} | {sum(marks)} | {len(marks)} | {100 * sum(marks) / len(marks):.1f} % |")
    if thoughts:
        print(f"| thought closed and answer ended | {sum(thoughts)} | {len(thoughts)} | {100 * sum(thoughts) / len(thoughts):.1f} % |")


if __name__ == "__main__":
    main()
