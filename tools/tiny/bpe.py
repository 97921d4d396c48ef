"""Trains the byte-level BPE of the model: the Qwen pre-tokenizer and special tokens, a small vocabulary.

    python bpe.py --words build/words.tsv --out models/tiny --vocab 8192
"""
import argparse
import json
import os

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

import wordnet
from dialogues import Writer
from render import Renderer

PATTERN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*"
           r"|\s*[\r\n]+|\s+(?!\S)|\s+")
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>", "<|object_ref_end|>", "<|box_start|>", "<|box_end|>",
           "<|quad_start|>", "<|quad_end|>", "<|vision_start|>", "<|vision_end|>", "<|vision_pad|>", "<|image_pad|>", "<|video_pad|>"]
PLAIN = ["<tool_call>", "</tool_call>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|fim_pad|>", "<|repo_name|>",
         "<|file_sep|>", "<tool_response>", "</tool_response>", "<think>", "</think>"]
AUDIO = ["<|audio_start|>", "<|audio_end|>", "<tts_pad>", "<tts_text_bos>", "<tts_text_eod>", "<tts_text_bos_single>", "<|audio_pad|>"]


def corpus(entries, renderer, count):
    """Glosses and questions first, then whole chats; special tokens become line breaks."""
    writer = Writer(entries, seed=7)
    for word, _, _, _, _, gloss in entries:
        yield f"{gloss}."
        yield f' {word} "{word}" {word[0].upper()}{word[1:]} a {word}'
    for _ in range(count):
        messages, tools, _, preserve = writer.conversation()
        if tools and writer.rng.random() < 0.8:
            messages = [m for m in messages if m["role"] != "system"]
            yield "\n".join(json.dumps(t) for t in tools)
            tools = None
        text = renderer.text(messages, tools, preserve)
        for token in ("<|im_start|>", "<|im_end|>", "<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>"):
            text = text.replace(token, "\x00")
        yield from (piece for piece in text.split("\x00") if piece)


def train(entries, vocab, chats):
    tok = Tokenizer(models.BPE(byte_fallback=False))
    tok.normalizer = normalizers.NFC()
    tok.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(PATTERN), behavior="isolated", invert=False),
        pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=False, use_regex=False)])
    tok.decoder = decoders.ByteLevel(add_prefix_space=False, trim_offsets=False, use_regex=False)
    tok.post_processor = processors.ByteLevel(add_prefix_space=False, trim_offsets=False, use_regex=False)
    added = len(SPECIAL) + len(PLAIN) + len(AUDIO)
    trainer = trainers.BpeTrainer(vocab_size=vocab - added, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    tok.train_from_iterator(corpus(entries, Renderer(), chats), trainer)
    for names, special in ((SPECIAL, True), (PLAIN, False)):
        tok.add_tokens([AddedToken(t, special=special, normalized=False) for t in names]) if not special else \
            tok.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in names])
    return tok


def save(tok, folder):
    """tokenizer.json, and tokenizer_config.json with the audio tokens, as the published model has them."""
    path = os.path.join(folder, "tokenizer.json")
    tok.save(path)
    with open(path, encoding="utf-8") as f:
        stored = json.load(f)
    stored["decoder"] = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}  # as published
    with open(path, "w", encoding="utf-8") as f:
        json.dump(stored, f, indent=2, ensure_ascii=False)
    table = {}
    first = tok.token_to_id(SPECIAL[0])
    for i, name in enumerate(SPECIAL + PLAIN + AUDIO):
        table[str(first + i)] = {"content": name, "lstrip": False, "normalized": False, "rstrip": False,
                                 "single_word": False, "special": name not in PLAIN}
    config = {"add_bos_token": False, "add_prefix_space": False, "added_tokens_decoder": table, "additional_special_tokens": SPECIAL[1:],
              "bos_token": None, "clean_up_tokenization_spaces": False, "eos_token": "<|im_end|>", "errors": "replace",
              "model_max_length": 8192, "pad_token": "<|endoftext|>", "split_special_tokens": False,
              "tokenizer_class": "Qwen2Tokenizer", "unk_token": None}
    with open(os.path.join(folder, "tokenizer_config.json"), "w", encoding="utf-8") as f:
        json.dump(config, f, indent=2, ensure_ascii=False)
        f.write("\n")


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--words", required=True)
    ap.add_argument("--out", required=True)
    ap.add_argument("--vocab", type=int, default=8192)
    ap.add_argument("--chats", type=int, default=20000)
    args = ap.parse_args()
    tok = train(wordnet.load(args.words), args.vocab, args.chats)
    save(tok, args.out)
    print("vocabulary", tok.get_vocab_size(), "first added", tok.token_to_id("<|endoftext|>"), "last", tok.token_to_id("</think>"))


if __name__ == "__main__":
    main()
