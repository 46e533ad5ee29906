"""Batches of dialogues as token ids and loss weights, made by processes of their own."""
import multiprocessing
import os
import random

import numpy as np
import torch
from tokenizers import Tokenizer

from dialogues import Dialogues, load_passages
from messages import READ
from sight import SHORT_SHARE, Sight, batch_has_short_sight, whole

CHARS_PER_TOKEN = (2.6, 3.2, 3.8)  # a dialogue that turns out short is followed by another


def encode(tokenizer, pieces):
    """Token ids and their weights. Pieces are tokenised one by one: see FactSource.answer."""
    ids, weights = [], []
    encoded = tokenizer.encode_batch_fast([text for text, _ in pieces], add_special_tokens=False)
    for (_, weight), piece in zip(pieces, encoded):
        ids += piece.ids
        weights += [weight] * len(piece.ids)
    return ids, weights


def sequence(source, tokenizer, n_tokens):
    """Dialogues one after the other, cut to n_tokens + 1."""
    end, ids, weights = tokenizer.token_to_id("<|endoftext|>"), [], []
    while len(ids) <= n_tokens:
        room = max(256, n_tokens - len(ids))
        new_ids, new_weights = encode(tokenizer, source.dialogue(int(room * source.rng.choice(CHARS_PER_TOKEN))))
        ids += new_ids + [end]
        weights += new_weights + [READ]
    return ids[:n_tokens + 1], weights[:n_tokens + 1]


def positions(rng, n_tokens):
    """Positions of a sequence: 0, 1, 2, ..., often with jumps.

    A jump makes the distance between a fact and its question long in rotary terms at the price of a short sequence, and
    is what the model meets when a runtime has evicted the tokens between. Long sequences only need it less.
    """
    out = torch.arange(n_tokens)
    if rng.random() < .15:
        return out + rng.randrange(8192)
    if rng.random() < (.6 if n_tokens <= 2048 else .35):
        count, reach = rng.choice((1, 1, 2, 4)), rng.choice((3000, 6000, 15000))
        for _ in range(count):
            out[rng.randrange(n_tokens):] += rng.randrange(reach // count)
    return out


class Batches:
    """An endless source of (ids [rows, n + 1], weights [rows, n + 1], positions [rows, n], sight [3, rows, n] or None).

    The last says what each token sees (sight.py); None: all that came before.

    `lengths`: [(n, share of batches)]; as many rows as `batch_tokens` hold, at least one. Each worker makes whole batches.
    """

    def __init__(self, lengths, corpus, tokenizer_path, seed, batch_tokens, workers=1):
        os.environ["TOKENIZERS_PARALLELISM"] = "false"  # the workers are what runs side by side
        context = multiprocessing.get_context("spawn")
        self.queue = context.Queue(4 * workers)
        for worker in range(workers):
            args = (self.queue, lengths, corpus, tokenizer_path, seed + 7919 * worker, batch_tokens)
            context.Process(target=_produce, args=args, daemon=True).start()

    def next(self, device):
        ids, weights, places, sight = (part if part is None else torch.from_numpy(part).to(device) for part in self.queue.get())
        return ids.long(), weights, places, sight


def _produce(queue, lengths, corpus, tokenizer_path, seed, batch_tokens):
    """Arrays by pickle: tensors would go by shared memory, of which containers have little."""
    torch.set_num_threads(1)
    tokenizer, source = Tokenizer.from_file(tokenizer_path), Dialogues(seed, load_passages(corpus))
    rng, sight = random.Random(seed + 1), Sight(tokenizer)
    while True:
        n = rng.choices([length for length, _ in lengths], [share for _, share in lengths])[0]
        rows = [sequence(source, tokenizer, n) for _ in range(max(1, batch_tokens // n))]
        seen = None
        if batch_has_short_sight(rng, n):
            seen = [sight.short(rng, ids[:n], w[:n]) if rng.random() < SHORT_SHARE else whole(n) for ids, w in rows]
            seen = np.array([np.stack(row) for row in seen], np.int32).transpose(1, 0, 2).copy()
        queue.put((np.array([ids for ids, _ in rows], np.int16), np.array([w for _, w in rows], np.float32),
                   torch.stack([positions(rng, n) for _ in rows]).numpy(), seen))
