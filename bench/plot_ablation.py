#!/usr/bin/env python3
"""A bar chart of `lily bench --ablate all --json FILE`: plot_ablation.py FILE OUTPUT.png"""
import argparse
import json

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402


def label(row):
    where = f"prefill {row['length']}" if row["kind"] == "prefill" else f"decode at {row['depth']}"
    return f"{row['mechanism']}\n{where}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("json")
    parser.add_argument("png")
    options = parser.parse_args()
    with open(options.json, encoding="utf-8") as file:
        result = json.load(file)
    rows = [row for row in result["ablation"] if "ratio" in row]
    rows.reverse()  # the first at the top
    medians = [row["ratio"]["median"] for row in rows]
    spread = [[row["ratio"]["median"] - row["ratio"]["min"] for row in rows],
              [row["ratio"]["max"] - row["ratio"]["median"] for row in rows]]
    colors = ["tab:blue" if row["kind"] == "prefill" else "tab:orange" for row in rows]
    figure, axes = plt.subplots(figsize=(8, 1 + 0.45 * len(rows)))
    axes.barh(range(len(rows)), medians, xerr=spread, color=colors, capsize=2)
    axes.set_yticks(range(len(rows)), [label(row) for row in rows], fontsize=7)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_xscale("log")
    ticks = [tick for tick in (0.5, 0.8, 1, 1.25, 1.5, 2, 3, 5, 10, 20, 50, 100) if tick <= 1.3 * max(medians + [1])]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_xticks([], minor=True)
    for place, value in enumerate(medians):
        axes.annotate(f"{value:.2f}", (max(value, 1), place), xytext=(6, 0), textcoords="offset points", va="center",
                      fontsize=7)
    axes.set_xlabel("tokens/s of the full engine / without the mechanism (median of pairs, least to most)")
    axes.set_title(f"{result['model']['name']} on {result['backend']}", fontsize=9)
    figure.tight_layout()
    figure.savefig(options.png, dpi=160)


if __name__ == "__main__":
    main()
