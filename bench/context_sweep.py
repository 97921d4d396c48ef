#!/usr/bin/env python3
"""Plots how time grows with context: prefill of whole prompts, and decode steps at a depth.

    python3 bench/context_sweep.py -m DIR --out docs/context.svg [--lily build/release/bin/lily] [--json FILE]

Runs `lily bench` once over all lengths, or takes the JSON of an earlier run, and draws milliseconds a token. A straight
line in the right-hand plot is a decode step whose attention costs the same for every position. Needs matplotlib (PyPI).
"""
import argparse
import json
import pathlib
import subprocess
import tempfile

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot  # noqa: E402  (after the choice of the output)

ROOT = pathlib.Path(__file__).resolve().parent.parent
LENGTHS = [256, 512, 1024, 2048, 4096, 8192, 16384, 32768]


def measure(arguments, target):
    longest = [n for n in LENGTHS if n <= arguments.longest]
    lengths = ",".join(map(str, longest))
    subprocess.run([arguments.lily, "bench", "-m", arguments.model, "--prefill", lengths, "--depth", "0," + lengths,
                    "--decode", str(arguments.decode), "-r", str(arguments.repetitions), "--json", target], check=True)


def milliseconds(rows, kind, key):
    """(length, median, fastest, slowest) of each row, in milliseconds a token."""
    picked = [(row[key], row["tokens_per_second"]) for row in rows if row["kind"] == kind]
    return [(n, 1e3 / rate["median"], 1e3 / rate["max"], 1e3 / rate["min"]) for n, rate in sorted(picked)]


def draw(axes, points, title, label):
    x = [point[0] for point in points]
    axes.fill_between(x, [point[2] for point in points], [point[3] for point in points], alpha=0.25, linewidth=0)
    axes.plot(x, [point[1] for point in points], marker="o", markersize=4)
    axes.set_title(title)
    axes.set_xlabel(label)
    axes.set_ylabel("milliseconds a token")
    axes.set_ylim(bottom=0)
    axes.set_xticks([0, 8192, 16384, 24576, 32768], ["0", "8K", "16K", "24K", "32K"])
    axes.grid(alpha=0.3)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-m", "--model", help="a model directory")
    parser.add_argument("--lily", default=str(ROOT / "build/release/bin/lily"))
    parser.add_argument("--json", help="of an earlier run, or where to keep this one's")
    parser.add_argument("--out", default="context.svg")
    parser.add_argument("--longest", type=int, default=LENGTHS[-1])
    parser.add_argument("--decode", type=int, default=16)
    parser.add_argument("--repetitions", type=int, default=3)
    arguments = parser.parse_args()
    target = arguments.json or tempfile.mkstemp(suffix=".json")[1]
    if arguments.model:
        measure(arguments, target)
    result = json.loads(pathlib.Path(target).read_text())
    pyplot.rcParams.update({"font.size": 9, "svg.hashsalt": "lily"})
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    draw(left, milliseconds(result["rows"], "prefill", "length"), "prefill, whole prompt", "tokens of the prompt")
    draw(right, milliseconds(result["rows"], "decode", "depth"), "decode", "tokens before it")
    figure.savefig(arguments.out, metadata={"Date": None})


if __name__ == "__main__":
    main()
