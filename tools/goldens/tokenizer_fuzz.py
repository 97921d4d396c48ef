#!/usr/bin/env python3
"""Compares `lily tokenize` with Hugging Face `tokenizers` on random text, until --rounds are done.

    python3 tools/goldens/tokenizer_fuzz.py [-m DIR] [--lily PROGRAM] [--rounds N] [--seed S]

DIR holds a tokenizer.json. Characters newer than Unicode 14 are left out (PCRE2 and utf8proc of Debian 12 end there),
and so are the combining marks that the normaliser of `tokenizers` does not know (it ends at Unicode 9).
"""

import argparse
import pathlib
import random
import subprocess
import sys
import tempfile
import unicodedata

from tokenizers import Tokenizer, normalizers

from texts import TEXTS

ROOT = pathlib.Path(__file__).resolve().parents[2]

BLOCKS = [(0x20, 0x7E), (0x00, 0x1F), (0x80, 0xFF), (0x100, 0x24F), (0x300, 0x36F), (0x370, 0x3FF), (0x400, 0x4FF),
          (0x590, 0x5FF), (0x600, 0x6FF), (0x900, 0x97F), (0x980, 0x9FF), (0xB80, 0xBFF), (0xE00, 0xE7F), (0xF00, 0xFFF),
          (0x1000, 0x109F), (0x1100, 0x11FF), (0x1780, 0x17FF), (0x1800, 0x180F), (0x1E00, 0x1EFF), (0x1F00, 0x1FFF),
          (0x2000, 0x206F), (0x2070, 0x209F), (0x20D0, 0x20FF), (0x2100, 0x218F), (0x2190, 0x22FF), (0x2460, 0x24FF),
          (0x3000, 0x303F), (0x3040, 0x30FF), (0x4E00, 0x4FFF), (0xAC00, 0xADFF), (0xF900, 0xFAFF), (0xFB00, 0xFDFF),
          (0xFE00, 0xFFFF), (0x1D100, 0x1D1FF), (0x1D400, 0x1D7FF), (0x1F1E6, 0x1F1FF), (0x1F300, 0x1F64F),
          (0x20000, 0x200FF), (0x2F800, 0x2FA1F), (0xE0000, 0xE01EF)]


def is_known(character):
    if unicodedata.category(character) in ("Cn", "Cs"):
        return False
    probes = [character + "\u0327", "\u0301" + character]
    return all(normalizers.NFC().normalize_str(probe) == unicodedata.normalize("NFC", probe) for probe in probes)


CHARACTERS = [[chr(c) for c in range(first, last + 1) if is_known(chr(c))] for first, last in BLOCKS]
COMMON = ["'s", "'LL", "'re", " ", "  ", "\n", "\r\n", "\t", "the", "12", "!", "<|im_end|>", "<think>", "</think>", "<", "|>",
          "\u0301", "\u180e", "\u200d", "'\u017f", "\u212a"]


def random_text(rng):
    parts = []
    for _ in range(rng.randrange(1, 400)):
        kind = rng.random()
        if kind < 0.3:
            parts.append(rng.choice(COMMON))
        elif kind < 0.35:
            parts.append(rng.choice(TEXTS))
        else:
            block = rng.choice(CHARACTERS if kind < 0.6 else CHARACTERS[:7])
            parts.append("".join(rng.choices(block, k=rng.randrange(1, 8))))
    return "".join(parts)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-m", default=ROOT / "tests/text/goldens", type=pathlib.Path)
    parser.add_argument("--lily", default=ROOT / "build/release/bin/lily")
    parser.add_argument("--rounds", default=200, type=int)
    parser.add_argument("--seed", default=1, type=int)
    options = parser.parse_args()
    reference = Tokenizer.from_file(str(options.m / "tokenizer.json"))
    rng = random.Random(options.seed)
    with tempfile.NamedTemporaryFile() as file:
        for number in range(options.rounds):
            text = random_text(rng)
            pathlib.Path(file.name).write_bytes(text.encode())
            run = subprocess.run([options.lily, "tokenize", "-m", options.m, "--trusted", "--file", file.name],
                                 capture_output=True, text=True, check=True)
            ids = [int(word) for word in run.stdout.split()]
            expected = reference.encode(text, add_special_tokens=False).ids
            if ids != expected:
                at = next((i for i, pair in enumerate(zip(ids, expected)) if pair[0] != pair[1]), min(len(ids), len(expected)))
                before = reference.decode(expected[:at], skip_special_tokens=False)
                sys.exit(f"text {number}: ids differ at {at}, lily {ids[at:at + 8]}, tokenizers {expected[at:at + 8]}, "
                         f"after {before[-20:]!r}, at {text[max(0, len(before) - 5):len(before) + 10]!r}")
    print(f"{options.rounds} texts, all ids equal")


if __name__ == "__main__":
    main()
