"""Packs generated conversations into rows of fixed length, in worker processes."""
import numpy as np
import torch
from tokenizers import Tokenizer
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

import wordnet
from dialogues import Writer
from render import Encoder, Renderer


def documents(entries, tokenizer, seed, longest):
    """Endless (ids, weights) of conversations that fit a row."""
    writer, renderer, encoder = Writer(entries, seed), Renderer(), Encoder(Tokenizer.from_file(tokenizer))
    while True:
        messages, tools, _, preserve = writer.conversation()
        ids, weight = encoder.document(renderer.text(messages, tools, preserve))
        if len(ids) <= longest:
            weight[0] = 0.0  # nothing before it says what starts a document
            yield ids, weight


def rows(source, length, pool=48):
    """Rows (ids, document numbers, weights): of a pool of documents, the longest that fits comes next."""
    waiting = [next(source) for _ in range(pool)]
    while True:
        ids, doc, weight, n = [], [], [], 0
        while True:
            room = length - len(ids)
            fitting = [i for i, d in enumerate(waiting) if len(d[0]) <= room]
            if not fitting:
                break
            best = max(fitting, key=lambda i: len(waiting[i][0])) if n else fitting[0]
            d = waiting.pop(best)
            waiting.append(next(source))
            ids += d[0]
            weight += d[1]
            doc += [n] * len(d[0])
            n += 1
        pad = length - len(ids)
        yield ids + [0] * pad, doc + [n] * pad, weight + [0.0] * pad


class Chats(IterableDataset):
    def __init__(self, words, tokenizer, batch, length, seed):
        self.args = words, tokenizer, batch, length, seed

    def __iter__(self):
        words, tokenizer, batch, length, seed = self.args
        info = get_worker_info()
        torch.set_num_threads(1)
        stream = rows(documents(wordnet.load(words), tokenizer, seed * 1000 + (info.id if info else 0), length), length)
        while True:
            part = [next(stream) for _ in range(batch)]
            yield tuple(torch.from_numpy(np.array([r[i] for r in part], dtype=t))
                        for i, t in ((0, np.int64), (1, np.int64), (2, np.float32)))


def loader(words, tokenizer, batch, length, seed, workers):
    return DataLoader(Chats(words, tokenizer, batch, length, seed), batch_size=None, num_workers=workers,
                      prefetch_factor=8 if workers else None, pin_memory=torch.cuda.is_available())
