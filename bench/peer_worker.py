#!/usr/bin/env python3
"""Times llama.cpp on one GGUF through its C API and prints JSON. peer_llama.py runs this with its own Python.

    python bench/peer_worker.py -m FILE --flash-attention on --prefill 512,2048 --decode 32 --depth 0,4096

The loops are those of llama-bench: random ids, batches of 512, decode one token at a time. Of a prompt only the last
token's logits are asked for. Loading and a warm-up are not timed.
"""
import argparse
import ctypes
import json
import random
import time

import llama_cpp
from llama_cpp import _logger

BATCH = 512
CONTEXT_STEP = 256
FLASH_ATTENTION = {"on": "LLAMA_FLASH_ATTN_TYPE_ENABLED", "off": "LLAMA_FLASH_ATTN_TYPE_DISABLED"}


class Engine:
    def __init__(self, path, positions, threads, flash_attention):
        llama_cpp.llama_backend_init()
        model_settings = llama_cpp.llama_model_default_params()
        model_settings.n_gpu_layers = 0
        self.model = llama_cpp.llama_model_load_from_file(path.encode(), model_settings)
        if not self.model:
            raise SystemExit(f"llama.cpp cannot load {path}")
        settings = llama_cpp.llama_context_default_params()
        settings.n_ctx = -(-positions // CONTEXT_STEP) * CONTEXT_STEP
        settings.n_batch = settings.n_ubatch = BATCH
        settings.n_outputs_max = 1  # otherwise there is room for 512 rows of logits, half a gigabyte
        settings.n_threads = settings.n_threads_batch = threads
        settings.flash_attn_type = flash_attention
        settings.offload_kqv = settings.op_offload = False
        self.context = llama_cpp.llama_init_from_model(self.model, settings)
        if not self.context:
            raise SystemExit(f"llama.cpp makes no context for {path}")
        self.memory = llama_cpp.llama_get_memory(self.context)
        self.vocabulary = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(self.model))
        self.batch = llama_cpp.llama_batch_init(BATCH, 0, 1)
        self.position = 0

    def clear(self):
        llama_cpp.llama_memory_clear(self.memory, False)
        self.position = 0

    def feed(self, count, with_logits):
        """`count` random tokens in one batch, with logits for its last token or none."""
        for i in range(count):
            self.batch.token[i] = random.randrange(self.vocabulary)
            self.batch.pos[i] = self.position + i
            self.batch.n_seq_id[i] = 1
            self.batch.seq_id[i][0] = 0
            self.batch.logits[i] = with_logits and i == count - 1
        self.batch.n_tokens = count
        status = llama_cpp.llama_decode(self.context, self.batch)
        if status != 0:
            raise SystemExit(f"llama_decode returns {status}")
        self.position += count

    def prefill(self, length):
        for done in range(0, length, BATCH):
            count = min(BATCH, length - done)
            self.feed(count, done + count == length)
        llama_cpp.llama_synchronize(self.context)

    def decode(self, tokens):
        for _ in range(tokens):
            self.feed(1, True)
            llama_cpp.llama_synchronize(self.context)

    def save(self):
        size = llama_cpp.llama_state_seq_get_size(self.context, 0)
        state = (ctypes.c_uint8 * size)()
        if llama_cpp.llama_state_seq_get_data(self.context, state, size, 0) != size:
            raise SystemExit("llama.cpp cannot save its state")
        return state, self.position

    def restore(self, saved):
        state, position = saved
        self.clear()
        if llama_cpp.llama_state_seq_set_data(self.context, state, len(state), 0) == 0:
            raise SystemExit("llama.cpp cannot restore its state")
        self.position = position


def tokens_per_second(tokens, work):
    start = time.perf_counter()
    work(tokens)
    return tokens / (time.perf_counter() - start)


def time_prefill(engine, length, repetitions):
    rates = []
    for _ in range(repetitions):
        engine.clear()
        rates.append(tokens_per_second(length, engine.prefill))
    return {"kind": "prefill", "length": length, "tokens_per_second": {"repetitions": rates}}


def time_decode(engine, tokens, depth, repetitions):
    engine.clear()
    if depth:
        engine.prefill(depth)
        saved = engine.save()
    rates = []
    for _ in range(repetitions):
        engine.restore(saved) if depth else engine.clear()
        rates.append(tokens_per_second(tokens, engine.decode))
    return {"kind": "decode", "depth": depth, "tokens_per_second": {"repetitions": rates}}


def numbers(text):
    return [int(word) for word in text.split(",") if word]


def commit():
    library = llama_cpp.llama_cpp._lib
    library.ggml_commit.restype = ctypes.c_char_p
    # "Dirty" are the files that the source package leaves out.
    return library.ggml_commit().decode().removesuffix("-dirty")


def about():
    return {"bindings": llama_cpp.__version__, "version": llama_cpp.llama_version().decode(), "commit": commit(),
            "features": llama_cpp.llama_print_system_info().decode().strip()}


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-m", "--model", help="without one the JSON only tells which llama.cpp this is")
    parser.add_argument("--flash-attention", choices=FLASH_ATTENTION, default="on")
    parser.add_argument("--prefill", type=numbers, default=[], help="lengths")
    parser.add_argument("--depth", type=numbers, default=[], help="positions before the decoded tokens")
    parser.add_argument("--decode", type=int, default=32, help="tokens")
    parser.add_argument("-r", "--repetitions", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", choices=["prefill", "decode"])
    options = parser.parse_args()
    if options.only == "prefill":
        options.depth = []
    if options.only == "decode":
        options.prefill = []
    return options


def main():
    options = parse()
    _logger.set_verbose(False)
    rows = []
    if options.model:
        positions = max(options.prefill + [depth + options.decode for depth in options.depth] + [BATCH + 1])
        flash_attention = getattr(llama_cpp, FLASH_ATTENTION[options.flash_attention])
        engine = Engine(options.model, positions, options.threads, flash_attention)
        engine.prefill(BATCH)
        engine.decode(1)
        rows += [time_prefill(engine, length, options.repetitions) for length in options.prefill]
        rows += [time_decode(engine, options.decode, depth, options.repetitions) for depth in options.depth]
    print(json.dumps({"llama.cpp": about(), "rows": rows}))


if __name__ == "__main__":
    main()
