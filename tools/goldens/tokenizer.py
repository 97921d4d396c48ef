#!/usr/bin/env python3
"""Writes tests/text/goldens/tokenizer.json and tokenizer_vectors.json: what Hugging Face `tokenizers` says.

A small byte-level BPE with the regular expression and the added tokens of Qwen3.6 is trained on the documentation
that ships with Python and on corpus.txt. Its ids for a list of awkward texts are the goldens of
tests/text/tokenizer_test.cpp. Needs: pip install tokenizers.
"""

import hashlib
import json
import pathlib
import pydoc_data.topics
import re
import sys

import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from texts import PIECES, TEXTS

HERE = pathlib.Path(__file__).resolve().parent
GOLDENS = HERE.parents[1] / "tests" / "text" / "goldens"
SEEDS = HERE.parents[1] / "tests" / "fuzz" / "corpus" / "tokenizer"

SPLIT = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*"
         r"|\s*[\r\n]+|\s+(?!\S)|\s+")
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>", "<|object_ref_end|>",
           "<|box_start|>", "<|box_end|>", "<|quad_start|>", "<|quad_end|>", "<|vision_start|>", "<|vision_end|>",
           "<|vision_pad|>", "<|image_pad|>", "<|video_pad|>"]
ADDED = ["<tool_call>", "</tool_call>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|fim_pad|>",
         "<|repo_name|>", "<|file_sep|>", "<tool_response>", "</tool_response>", "<think>", "</think>"]
VOCABULARY = 2800

# JSON merge patches: other forms of the same file that Lily reads too.
VARIANTS = {
    "qwen": {},
    "not_normalised": {"normalizer": None},
    "ignore_merges": {"model": {"ignore_merges": True}},
    "gpt2_split": {"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True,
                                     "use_regex": True, "pretokenizers": None}},
}


def train():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(SPLIT), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    own = (HERE / "corpus.txt").read_text()
    texts = [topic for _, topic in sorted(pydoc_data.topics.topics.items())] + [own] * 8
    trainer = trainers.BpeTrainer(vocab_size=VOCABULARY, show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(texts, trainer)
    document = json.loads(tokenizer.to_str())
    document["model"]["vocab"]["\u0120Qzq"] = len(document["model"]["vocab"])  # no merges lead there
    tokenizer = Tokenizer.from_str(json.dumps(document))
    tokenizer.add_special_tokens([AddedToken(text, normalized=False, special=True) for text in SPECIAL])
    tokenizer.add_tokens([AddedToken(text, normalized=False) for text in ADDED])
    return json.loads(tokenizer.to_str()), hashlib.sha256("".join(texts).encode()).hexdigest()


def merge_patch(target, patch):
    target = dict(target)
    for key, value in patch.items():
        if isinstance(value, dict):
            target[key] = merge_patch(target.get(key) or {}, value)
        elif value is None:
            target.pop(key, None)
        else:
            target[key] = value
    return target


class Oracle:
    """Ids of trusted and untrusted text; only the ids of text between added tokens come from the library."""

    def __init__(self, document):
        document = {"normalizer": None, **document}
        self.added = {token["content"]: token["id"] for token in document["added_tokens"]}
        self.whole = Tokenizer.from_str(json.dumps(document))
        self.text_only = Tokenizer.from_str(json.dumps({**document, "added_tokens": []}))

    def trusted(self, text):
        return self.whole.encode(text, add_special_tokens=False).ids

    def pieces(self, pieces):
        longest_first = sorted(self.added, key=len, reverse=True)
        pattern = re.compile("(" + "|".join(map(re.escape, longest_first)) + ")")
        ids, run = [], ""
        for text, trusted in pieces:
            for part in pattern.split(text) if trusted else [text]:
                if trusted and part in self.added:
                    ids += self.text_only.encode(run).ids + [self.added[part]]
                    run = ""
                else:
                    run += part
        return ids + self.text_only.encode(run).ids


def write_seeds(document):
    """Small whole files for tests/fuzz/tokenizer_fuzz.cpp: mutations of a large one seldom meet anything new."""
    model = document["model"]
    small = {**document, "added_tokens": document["added_tokens"][:1] + document["added_tokens"][-1:],
             "model": {**model, "vocab": {token: id for token, id in model["vocab"].items() if id < 270},
                       "merges": [pair for pair in model["merges"] if model["vocab"]["".join(pair)] < 270]}}
    lines = [" ".join(pair) for pair in small["model"]["merges"]]
    SEEDS.mkdir(parents=True, exist_ok=True)
    (SEEDS / "pairs").write_bytes(json.dumps(small, ensure_ascii=False).encode() + b"\0I'm <|im_end|> e\xcc\x81 \xff")
    (SEEDS / "lines").write_bytes(json.dumps(merge_patch(small, {"model": {"merges": lines}})).encode() + b"\0 the  \n")


def main():
    document, corpus_hash = train()
    write_seeds(document)
    file = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    vectors = []
    for variant, patch in VARIANTS.items():
        oracle = Oracle(merge_patch(document, patch))
        for text in TEXTS:
            vectors.append([variant, [[text, True]], oracle.trusted(text)])
            assert vectors[-1][2] == oracle.pieces([[text, True]]), text
            vectors.append([variant, [[text, False]], oracle.pieces([[text, False]])])
        vectors += [[variant, pieces, oracle.pieces(pieces)] for pieces in PIECES]
    provenance = {"command": "python3 tools/goldens/tokenizer.py", "tokenizers": tokenizers.__version__,
                  "python": sys.version.split()[0], "corpus_sha256": corpus_hash,
                  "tokenizer_sha256": hashlib.sha256(file.encode()).hexdigest()}
    GOLDENS.mkdir(parents=True, exist_ok=True)
    (GOLDENS / "tokenizer.json").write_text(file)
    lines = ",\n".join(json.dumps(vector, separators=(",", ":")) for vector in vectors)
    (GOLDENS / "tokenizer_vectors.json").write_text(
        '{"provenance":' + json.dumps(provenance, indent=1) + ',\n"variants":' + json.dumps(VARIANTS) +
        ',\n"vectors": [\n' + lines + "\n]}\n")
    print(f"tokenizer.json {len(file.encode())} bytes, {len(vectors)} vectors")


if __name__ == "__main__":
    main()
