"""The areas scheme of OpenVINO GenAI, step by step, and what belongs to it: KVCrush, rotation, recordings."""
import json
import os
from dataclasses import dataclass

from ._library import Handle, InvalidArgument, ask, flatten
from ._library import replay as _replay


@dataclass(frozen=True)
class Shift:
    """A block that outlives an eviction behind a hole."""

    origin: int  # its number before
    place: int  # and after
    tokens: int  # positions by which its keys are turned back


@dataclass(frozen=True)
class LayerEviction:
    """What one eviction did to one layer; numbers of blocks in its table as it was before, ascending."""

    evicted: tuple
    rescued: tuple  # would have left, but for KVCrush
    shifts: tuple  # of Shift, where the configuration has apply_rotation


def _shifts(told):
    return tuple(Shift(shift["from"], shift["to"], shift["tokens"]) for shift in told)


class Areas:
    """One sequence's cache under the areas scheme. After each pass, prefill included: register_scores(), then evict().

    `config` has the names and defaults of cache_eviction_config in docs/policy_replay.md; sizes are tokens, multiples of
    `block_size`. Nothing is moved: victims are named. By one thread at a time.
    """

    def __init__(self, block_size, n_layers, prompt_tokens, config=None, *, upstream=False):
        recording = {
            "block_size": block_size,
            "n_layers": n_layers,
            "prompt_tokens": prompt_tokens,
            "upstream": upstream,
            "cache_eviction_config": dict(config or {}),
            "steps": [],
        }
        self._set(Handle.of(recording), block_size, n_layers)

    def _set(self, handle, block_size, n_layers):
        self._handle, self.block_size, self.n_layers = handle, block_size, n_layers

    def copy(self):
        """A sequence of its own that goes on from here: for who may take tokens back."""
        other = Areas.__new__(Areas)
        other._set(self._handle.copy(), self.block_size, self.n_layers)
        return other

    def _state(self, scheduled=1):
        return self._handle.act({"act": "state", "scheduled": scheduled})

    @property
    def processed(self):
        """Tokens of all passes so far."""
        return self._state()["processed"]

    @property
    def cached(self):
        """Those of them that have not left."""
        return self._state()["cached"]

    @property
    def max_after_eviction(self):
        """The most tokens that an eviction leaves."""
        return self._state()["max_after_eviction"]

    def count_queries(self, scheduled):
        """The last queries of a pass of `scheduled` tokens that its scores should be the sum of."""
        return self._state(scheduled)["queries"]

    def wanted_diversity(self, scheduled):
        """Of how many tokens n behind the start area the pass to come has to bring diversity; 0: of none."""
        return self._state(scheduled)["wanted_diversity"]

    def register_scores(self, scores, scheduled=None, skipped=()):
        """`scores`: [n_layers, tokens], for each token now in the cache the attention that the counted queries gave it, summed
        over heads. `scheduled`: tokens of the pass; None: as many as there are scores for. `skipped`: blocks that a sparse pass
        did not look at, ascending, whose tokens the scores leave out."""
        flat, (_, n_tokens) = flatten("scores", scores, (self.n_layers, None))
        gone, _ = flatten("skipped", list(skipped), (None,))
        if scheduled is None:
            scheduled = n_tokens + len(gone) * self.block_size - self.cached
            if scheduled < 1:
                raise InvalidArgument(f"scores of {n_tokens} tokens, and {self.cached} were cached before: give one for each "
                                      "cached token, those of the pass included")
        self._handle.act({"act": "register_scores", "scheduled": scheduled}, {"scores": flat, "skipped": gone})

    def register_diversity(self, layer, diversity):
        """`diversity`: [n / block_size, n] for the n of wanted_diversity(), how unlike each block's tokens are to each token.
        Once for each layer before evict()."""
        flat, _ = flatten("diversity", diversity, (None, None))
        self._handle.act({"act": "register_diversity", "layer": layer}, {"diversity": flat})

    def evict(self):
        """A LayerEviction for each layer; as many blocks leave in each, mostly none."""
        return [
            LayerEviction(tuple(layer["evicted"]), tuple(layer["rescued"]), _shifts(layer["rotation"]))
            for layer in self._handle.act({"act": "evict"})["layers"]
        ]

    def reset(self, prompt_tokens):
        """The sequence was preempted, and all of its tokens are computed again as a prompt."""
        self._handle.act({"act": "reset", "prompt_tokens": prompt_tokens})


def replay(recording):
    """A recording of scores through the areas scheme: a file's path, or the same as a dict (docs/policy_replay.md). What
    `ebb policy replay --json` prints, as a dict."""
    if isinstance(recording, dict):
        try:
            return _replay(json.dumps(recording, allow_nan=False).encode())
        except (TypeError, ValueError) as error:
            if isinstance(error, InvalidArgument):
                raise
            raise InvalidArgument(f"the recording cannot be written as JSON: {error}") from None
    with open(os.fspath(recording), "rb") as file:
        return _replay(file.read())


def rescue_blocks(sums, victims, block_size, budget, anchor="RANDOM", rng_seed=0, earlier=0):
    """KVCrush: which of `victims` (ascending numbers of blocks) stay, ascending.

    `sums`: [blocks * block_size], what attention gave each token of all blocks that compete. `budget`: how many are rescued.
    `anchor`: RANDOM, ZEROS, ONES, MEAN or ALTERNATING. `earlier`: how many choices the generator of `rng_seed` made before."""
    flat, _ = flatten("sums", sums, (None,))
    gone, _ = flatten("victims", list(victims), (None,))
    question = {"ask": "rescue", "block_size": block_size, "budget": budget, "anchor_point_mode": anchor,
                "rng_seed": rng_seed, "earlier": earlier}
    return ask(question, {"sums": flat, "victims": gone})["rescued"]


def find_shifts(n_blocks, victims, block_size, n_rows=None):
    """By how much the keys of blocks behind evicted ones are turned back: a tuple of Shift. `n_rows`: of the rotation table,
    whose last row is the largest shift that it has; None: any."""
    gone, _ = flatten("victims", list(victims), (None,))
    question = {"ask": "shifts", "n_blocks": n_blocks, "block_size": block_size}
    if n_rows is not None:
        question["n_rows"] = n_rows
    return _shifts(ask(question, {"victims": gone}))


@dataclass(frozen=True)
class RotationTable:
    """Row i turns keys back by i blocks."""

    cos: tuple  # [n_rows][head_dim / 2]
    negative_sin: tuple  # [n_rows][head_dim / 2]

    def turn_back(self, key, row):
        """`key`: [head_dim], rotated in halves: pairs (j, j + head_dim / 2)."""
        cos, sin = self.cos[row], self.negative_sin[row]
        half = len(cos)
        flat, _ = flatten("key", key, (2 * half,))
        low = [x * c - y * s for x, y, c, s in zip(flat[:half], flat[half:], cos, sin)]
        high = [x * s + y * c for x, y, c, s in zip(flat[:half], flat[half:], cos, sin)]
        return low + high


def rotation_table(n_rows, block_size, head_dim, theta=10000.0):
    """For plain rotary embeddings of whole heads in halves, of base `theta`."""
    told = ask({"ask": "rotation_table", "n_rows": n_rows, "block_size": block_size, "head_dim": head_dim, "theta": theta})
    half = told["half_dim"]

    def rows(values):
        return tuple(tuple(values[at : at + half]) for at in range(0, len(values), half))

    return RotationTable(rows(told["cos"]), rows(told["negative_sin"]))
