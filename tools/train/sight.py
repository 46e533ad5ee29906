"""What a token of a training sequence sees of those before it: all, or what a small KV budget would have kept.

Keys and values that were computed while most of a document was out of sight carry less of it than the model expects that never
forgot anything: who owns a boat is told here, where the owner lives there, and nothing in between has put the two together.
A model that met only whole contexts names half of such answers with every needed line in front of it. So a part of the
sequences is read in a sight of a few dozen to a few hundred tokens, with the heads of messages (where questions stand) kept, and
answered either with all of it back or only with what the answer needs and some of the rest.

Three numbers a token say it: `far`, how many tokens it sees back; `need`, the least rank that it sees beyond; `rank`, its own.
"""
import numpy as np

from messages import READ, VALUE

HEAD, NEEDED, OTHER = 2, 1, 0  # ranks: heads of messages, what a reply needs, everything else
SHARES = ((1024, .7), (2048, .7), (4096, .5))  # of the batches of sequences up to so many tokens are read in short sight
SHORT_SHARE = .85  # of the sequences in such a batch
BEFORE, AFTER, MOST_PLACES = 28, 12, 48  # tokens around a value that come back with it; places of one value that are looked up
LONG = 300  # messages of more tokens may begin with questions
GROUP = 16  # tokens of which some come back unasked


def batch_has_short_sight(rng, n_tokens):
    return rng.random() < next((share for most, share in SHARES if n_tokens <= most), 0)


def whole(n_tokens):
    """(far, need, rank): everything is seen."""
    return np.full(n_tokens, n_tokens, np.int32), np.zeros(n_tokens, np.int8), np.zeros(n_tokens, np.int8)


class Sight:
    """Knows the tokenizer's texts: of a byte-level one over ASCII, a token's length is that of its text."""

    def __init__(self, tokenizer):
        self.texts = [tokenizer.id_to_token(i) for i in range(tokenizer.get_vocab_size())]
        self.lengths = np.array([len(text) for text in self.texts])
        self.opens = tokenizer.token_to_id("<|im_start|>")

    def short(self, rng, ids, weights):
        """(far, need, rank) of one sequence; `weights` tell replies and values from what is only read."""
        ids, weights = np.array(ids), np.array(weights)
        n, is_read = len(ids), weights <= READ
        far = np.full(n, int(48 * 12 ** rng.random()), np.int32)
        rank, need = np.zeros(n, np.int8), np.full(n, HEAD, np.int8)
        head, tail, opens = rng.choice((24, 64, 256)), rng.choice((12, 48, 160)), np.flatnonzero(ids == self.opens)
        for at, end in zip(opens, [*opens[1:], n]):
            rank[at:at + (head if end - at > LONG else 8)] = HEAD
        replies = np.flatnonzero(~is_read & np.roll(is_read, 1))
        answers = ~is_read
        for at in replies:
            answers[max(0, at - tail):at] = True
        if rng.random() < .5:
            need[answers] = OTHER
            return far, need, rank
        need[answers] = NEEDED
        self._mark_needed(ids, weights, rank)
        groups = np.array([rng.random() for _ in range(-(-n // GROUP))]) < rng.choice((0, .1, .3))
        rank = np.maximum(rank, np.repeat(groups, GROUP)[:n].astype(np.int8))
        return far, need, rank

    def _mark_needed(self, ids, weights, rank):
        starts = np.concatenate(([0], np.cumsum(self.lengths[ids])))
        text = "".join(self.texts[i] for i in ids)  # spaces and line ends in the tokenizer's own letters
        is_value = weights == VALUE
        edges = np.flatnonzero(np.diff(np.concatenate(([0], is_value.astype(np.int8), [0]))))
        for value in {text[starts[a]:starts[b]].lstrip("\u0120") for a, b in zip(edges[::2], edges[1::2])}:
            at, places = text.find(value), 0
            while value and at >= 0 and places < MOST_PLACES:
                first, last = np.searchsorted(starts, (at, at + len(value)), "right")
                part = rank[max(0, first - 1 - BEFORE):last + AFTER]
                np.maximum(part, NEEDED, out=part)
                at, places = text.find(value, at + 1), places + 1
