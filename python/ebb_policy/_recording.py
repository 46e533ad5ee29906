"""Recorded attention through any policy, ours or one's own, and what they keep of it."""
from array import array
from dataclasses import dataclass

from ._library import InvalidArgument, ask, flatten
from ._policies import show_policy

# What is told of a block as a whole, and of a row: a block as the heads of one scope have it.
_OF_BLOCKS = ("hold", "source", "priority", "last_access", "attention", "focus", "recovery")
_OF_ROWS = ("total", "n_queries", "window_mean", "window_max", "last", "reread", "key_norm", "output_length", "expected", "expected_value",
            "value_length")
_OF_KEYS = ("key_direction", "key_least", "key_greatest", "key_mean")
_OF_VALUES = ("value_least", "value_greatest", "value_mean")
_OF_SLICES = ("slice_total", "slice_n_queries", "slice_window_mean", "slice_window_max", "slice_last")
_VECTORS = (*_OF_KEYS, *_OF_VALUES, *_OF_SLICES)

HOLDS = ("none", "protected", "kept", "pinned")
SOURCES = ("system", "user", "assistant", "tool")
_SCOPES = ("session", "layer", "head")


def _codes(name, values, names):
    """Names as the numbers that the library takes; numbers as they are."""
    try:
        return [names.index(value) if isinstance(value, str) else value for value in values]
    except ValueError:
        raise InvalidArgument(f"{name} must be of {', '.join(names)}") from None


class Evidence:
    """What a policy may look at: blocks, and rows of them in each scope (heads that choose together).

    begin, end     [blocks], positions; blocks have 1 to `grain` tokens and stand in order
    rows           for each scope the blocks that it has, ascending; None: all in every scope
    of blocks      hold (HOLDS), source (SOURCES), priority (1), last_access, attention, focus, recovery: [blocks]
    of rows        total, n_queries, window_mean, window_max, last, reread, key_norm, output_length, expected (what each query to
                   come is expected to give a token), expected_value (that times the length of its value), value_length: [scopes]
                   [rows of the scope];
                   key_direction, key_least, key_greatest, key_mean, value_least, value_greatest, value_mean: [scopes][rows of the
                   scope][head_dim], key_direction of a scope of several heads that of one head behind the other; recordings give key_direction and key_norm, the others are for evidence of one's own;
                   slice_total, slice_n_queries, slice_window_mean, slice_window_max, slice_last: [scopes][rows of the scope][grain /
                   slice], the attention of each run of `slice` tokens of a block by itself

    Attention is summed over the query heads of a KV head, over the heads of the scope, and over a block's tokens. Scopes are in
    the order of layers, then KV heads. A policy says in show_policy().asks what of this it needs.
    """

    def __init__(self, begin, end, *, scope="head", n_layers=1, n_kv_heads=1, grain=1, rows=None, end_position=None, **columns):
        if scope not in _SCOPES:
            raise InvalidArgument(f"scope must be of {', '.join(_SCOPES)}")
        self.scope, self.n_layers, self.n_kv_heads, self.grain = scope, n_layers, n_kv_heads, grain
        self.begin = flatten("begin", begin, (None,))[0]
        self.end = flatten("end", end, (len(self.begin),))[0]
        self.end_position = int(self.end[-1]) if end_position is None and len(self.end) else end_position
        n_scopes = {"session": 1, "layer": n_layers, "head": n_layers * n_kv_heads}[scope]
        self.rows = [list(range(len(self.begin)))] * n_scopes if rows is None else [list(of_scope) for of_scope in rows]
        if len(self.rows) != n_scopes:
            raise InvalidArgument(f"rows of {len(self.rows)} scopes, and there are {n_scopes}")
        self.columns = {name: self._column(name, values) for name, values in columns.items() if values is not None}

    def _column(self, name, values):
        if name in _OF_BLOCKS:
            names = {"hold": HOLDS, "source": SOURCES}.get(name)
            return flatten(name, _codes(name, values, names) if names else values, (len(self.begin),))[0]
        if name not in (*_OF_ROWS, *_VECTORS):
            raise InvalidArgument(f"no column is called {name}; there are {', '.join((*_OF_BLOCKS, *_OF_ROWS, *_VECTORS))}")
        if len(values) != len(self.rows):
            raise InvalidArgument(f"{name} of {len(values)} scopes, and there are {len(self.rows)}")
        is_direction = name in _VECTORS
        column = []
        for rows, of_scope in zip(self.rows, values):
            flat, got = flatten(name, of_scope, (len(rows), None) if is_direction else (len(rows),))
            width = got[1] if is_direction else 1
            column.append([flat[at : at + width] for at in range(0, len(flat), width)] if is_direction else flat)
        return column

    @property
    def scopes(self):
        """A Scope for each, with its rows' columns."""
        return [Scope(self, index) for index in range(len(self.rows))]

    def hold(self, *, sinks=0, recent=0):
        """The same with the first and the last so many tokens protected, as sessions do (4 and 64): they leave when nothing else
        can."""
        hold = array("d", self.columns.get("hold", [0.0] * len(self.begin)))
        for block, (begin, end) in enumerate(zip(self.begin, self.end)):
            if begin < sinks or end > self.end_position - recent:
                hold[block] = max(hold[block], HOLDS.index("protected"))
        other = Evidence.__new__(Evidence)
        other.__dict__.update(self.__dict__)
        other.columns = {**self.columns, "hold": hold}
        return other

    def choose(self, by, *, budget_tokens=None, keep_frames=None, sharing="even", floor=0.0):
        """What stays within a budget, as the engine would choose: a Choice.

        `by`: a policy ("snapkv:window=16"), a function that gives a Scope one score for each of its rows, or such scores for each
        scope; the highest stay, the newer of equals, and infinity never leaves. Budgets of scores of one's own are shared among
        scopes by `sharing` and `floor`, those of policies as these do. `budget_tokens`: whole blocks of them, in every head;
        `keep_frames`: or blocks, of all heads together."""
        question = {"ask": "choose", "n_layers": self.n_layers, "n_kv_heads": self.n_kv_heads, "grain": self.grain,
                    "end_position": self.end_position}
        if (budget_tokens is None) == (keep_frames is None):
            raise InvalidArgument("give budget_tokens or keep_frames")
        hot = sum(len(rows) for rows in self.rows) * (self.n_layers * self.n_kv_heads // len(self.rows))
        if keep_frames is None:
            keep_frames = budget_tokens // self.grain * self.n_layers * self.n_kv_heads
        question["keep_frames"] = min(keep_frames, hot)
        arrays = {"begin": self.begin, "end": self.end, "n_rows": array("d", map(len, self.rows)),
                  "row_block": array("d", (block for rows in self.rows for block in rows))}
        for name, column in self.columns.items():
            if name in _OF_BLOCKS:
                arrays[name] = column
            elif name in _VECTORS:
                arrays[name] = array("d", (x for of_scope in column for row in of_scope for x in row))
                if name in _OF_SLICES:
                    continue
                n_dims = next((len(row) for of_scope in column for row in of_scope), 0)
                if question.setdefault("n_key_dims" if name in _OF_KEYS else "n_value_dims", n_dims) != n_dims:
                    raise InvalidArgument(f"{name} has {n_dims} numbers a row, and another column of its kind has not")
            else:
                arrays[name] = array("d", (x for of_scope in column for x in of_scope))
        if isinstance(by, str):
            question["policy"] = by
            wanted = show_policy(by).scope
            if wanted != self.scope:
                raise InvalidArgument(f"policy {by} chooses by {wanted}, and this evidence is by {self.scope}")
        else:
            scores = [by(scope) for scope in self.scopes] if callable(by) else by
            question.update(scope=self.scope, sharing=sharing, floor=floor)
            arrays["scores"] = self._scores(scores)
        return Choice._of(self, ask(question, arrays))

    def _scores(self, scores):
        if len(scores) != len(self.rows):
            raise InvalidArgument(f"scores of {len(scores)} scopes, and there are {len(self.rows)}")
        flat = array("d")
        for rows, of_scope in zip(self.rows, scores):
            flat.extend(flatten("scores", of_scope, (len(rows),))[0])
        return flat


class Scope:
    """The rows of some heads that choose together; columns are attributes, one value for each row: scope.window_mean[i]."""

    def __init__(self, evidence, index):
        heads = {"session": evidence.n_layers * evidence.n_kv_heads, "layer": evidence.n_kv_heads, "head": 1}[evidence.scope]
        first = index * heads
        self.evidence, self.index = evidence, index
        self.layer = first // evidence.n_kv_heads if evidence.scope != "session" else None
        self.head = first % evidence.n_kv_heads if evidence.scope == "head" else None
        self.blocks = evidence.rows[index]
        self.begin = [int(evidence.begin[block]) for block in self.blocks]
        self.end = [int(evidence.end[block]) for block in self.blocks]

    def __len__(self):
        return len(self.blocks)

    def __getattr__(self, name):
        columns = self.__dict__["evidence"].columns
        if name not in columns:
            raise AttributeError(f"{name} was not asked for; there are {', '.join(columns)}")
        if name in _OF_BLOCKS:
            return [columns[name][block] for block in self.blocks]
        return columns[name][self.index]


@dataclass(frozen=True)
class Choice:
    """What stays and what leaves, by scope; blocks by their numbers."""

    policy: str  # "given": scores of one's own
    scope: str
    n_layers: int
    n_kv_heads: int
    kept: tuple  # [scopes], ascending
    evicted: tuple  # [scopes], in the order in which they leave
    scores: tuple  # [scopes][rows]; infinity never leaves

    @classmethod
    def _of(cls, evidence, told):
        scopes = told["scopes"]
        scores = (tuple(float("inf") if score is None else score for score in scope["scores"]) for scope in scopes)
        return cls(told["policy"], told["scope"], evidence.n_layers, evidence.n_kv_heads,
                   tuple(tuple(scope["kept"]) for scope in scopes), tuple(tuple(scope["evicted"]) for scope in scopes),
                   tuple(scores))

    @property
    def kept_by_head(self):
        """[n_layers * n_kv_heads] sets of blocks, whatever chose together."""
        heads = self.n_layers * self.n_kv_heads // len(self.kept)
        return [set(kept) for kept in self.kept for _ in range(heads)]


def overlap(one, other):
    """The share of what `one` keeps, in blocks of all heads, that `other` keeps too; 1 where it keeps nothing."""
    pairs = list(zip(one.kept_by_head, other.kept_by_head, strict=True))
    n_kept = sum(len(kept) for kept, _ in pairs)
    return sum(len(kept & also) for kept, also in pairs) / n_kept if n_kept else 1.0


class Recording:
    """Attention weights over a cache from which nothing left, step by step.

    Steps are those of the run: the prompt whole or in chunks, then one token each. What is noted of them is what a session of the
    engine notes.
    """

    def __init__(self, n_layers=1, n_kv_heads=1, grain=1):
        self.n_layers, self.n_kv_heads, self.grain = n_layers, n_kv_heads, grain
        self.n_tokens = 0
        self._steps, self._attention, self._keys = array("d"), array("d"), []

    def add(self, attention, keys=None):
        """`attention`: [n_layers, n_kv_heads, queries, tokens], what each of the step's queries gave each token so far, those of the
        step included, summed over the query heads of a KV head. `keys`: [n_layers, n_kv_heads, queries, head_dim], rotated, for
        policies that look at keys."""
        flat, (_, _, queries, tokens) = flatten("attention", attention, (self.n_layers, self.n_kv_heads, None, None))
        if queries < 1 or tokens != self.n_tokens + queries:
            raise InvalidArgument(f"{queries} queries over {tokens} tokens: behind {self.n_tokens}, a step of n queries looks at "
                                  f"{self.n_tokens} + n")
        if keys is not None:
            keys, (_, _, _, head_dim) = flatten("keys", keys, (self.n_layers, self.n_kv_heads, queries, None))
            if self._keys and self._keys[0][2] != head_dim:
                raise InvalidArgument(f"keys of {head_dim} dimensions behind keys of {self._keys[0][2]}")
            self._keys.append((keys, queries, head_dim))
        self._attention.extend(flat)
        self._steps.append(queries)
        self.n_tokens = tokens

    def evidence(self, policy=None, *, scope="head", totals=False, window=0, last=False, shares=False, keys=False, slice=0):
        """What a policy would have been shown; or, without one, what is asked for here: attention of all queries (totals), of the
        last `window` queries, of the very last one, shares of it lately (attention and last_access of blocks), lengths and
        directions of keys. With `slice`, totals, window and last are told of each run of so many tokens of a block too."""
        question = {"ask": "observe", "n_layers": self.n_layers, "n_kv_heads": self.n_kv_heads, "grain": self.grain}
        if policy is not None:
            question["policy"] = policy
            keys = show_policy(policy).asks["keys"]
        else:
            question.update(scope=scope, totals=totals, window=window, last=last, shares=shares, keys=keys, slice=slice)
        arrays = {"steps": self._steps, "attention": self._attention}
        if keys:
            arrays["keys"] = self._all_keys()
            question["head_dim"] = self._keys[0][2] if self._keys else 0
        return self._evidence(ask(question, arrays))

    def _all_keys(self):
        """[n_layers, n_kv_heads, tokens, head_dim] of the steps' own."""
        if len(self._keys) != len(self._steps):
            raise InvalidArgument("this needs keys: give them with each add()")
        all_keys = array("d")
        for head in range(self.n_layers * self.n_kv_heads):
            for keys, queries, head_dim in self._keys:
                n = queries * head_dim
                all_keys.extend(keys[head * n : (head + 1) * n])
        return all_keys

    def _evidence(self, told):
        columns = told["columns"]
        begin, end = columns.pop("begin"), columns.pop("end")
        n, dims = len(begin), told["n_key_dims"]
        for name, column in columns.items():
            if name == "key_direction":
                rows = [column[at : at + dims] for at in range(0, len(column), dims)] if dims else []
                columns[name] = [rows[at : at + n] for at in range(0, len(rows), n)]
            elif name in _OF_SLICES:
                width = told["n_slices"]
                rows = [column[at : at + width] for at in range(0, len(column), width)]
                columns[name] = [rows[at : at + n] for at in range(0, len(rows), n)]
            elif name in _OF_ROWS:
                columns[name] = [column[at : at + n] for at in range(0, len(column), n)]
        return Evidence(begin, end, scope=told["scope"], n_layers=self.n_layers, n_kv_heads=self.n_kv_heads, grain=self.grain,
                        end_position=told["end_position"], **columns)

    def choose(self, by, *, sinks=0, recent=0, asks=None, sharing="even", floor=0.0, **budget):
        """What `by` would keep of the recording: a policy, or a function of a Scope (Evidence.choose); `asks` says what evidence that
        gets (Recording.evidence), by default all of attention. `sinks`, `recent`: tokens that are protected."""
        if isinstance(by, str):
            evidence = self.evidence(by)
        else:
            evidence = self.evidence(**(asks or {"totals": True, "window": 32, "last": True, "shares": True}))
        return evidence.hold(sinks=sinks, recent=recent).choose(by, sharing=sharing, floor=floor, **budget)

    def compare(self, policies, *, later=None, **how):
        """What each of `policies` keeps, by name; those that are no text, or (function, how) pairs with arguments of choose(), are
        one's own. `later`: attention of queries that come after the recording, [n_layers, n_kv_heads, queries, tokens or more]:
        the share of it that falls on what is kept says how good a choice was. A Comparison."""
        choices = {}
        for name, by in policies.items():
            by, own = by if isinstance(by, tuple) else (by, {})
            choices[name] = self.choose(by, **{**how, **own})
        mass = {name: self.kept_mass(choice, later) for name, choice in choices.items()} if later is not None else None
        return Comparison(choices, mass)

    def kept_mass(self, choice, later):
        """The share of what later queries give the recording's tokens that falls on what `choice` keeps, a mean over heads."""
        flat, (_, _, queries, tokens) = flatten("later", later, (self.n_layers, self.n_kv_heads, None, None))
        if tokens < self.n_tokens:
            raise InvalidArgument(f"later queries over {tokens} tokens, and {self.n_tokens} are recorded")
        shares = []
        for head, kept in enumerate(choice.kept_by_head):
            mass = [0.0] * self.n_tokens
            for query in range(queries):
                at = (head * queries + query) * tokens
                for token in range(self.n_tokens):
                    mass[token] += flat[at + token]
            total = sum(mass)
            shares.append(sum(m for t, m in enumerate(mass) if t // self.grain in kept) / total if total else 1.0)
        return sum(shares) / len(shares)


@dataclass(frozen=True)
class Comparison:
    """Choices by name; print it for a table of how much of each row's kept blocks each column keeps too."""

    choices: dict
    kept_mass: dict | None  # by name, where later attention was given

    def overlap(self, one, other):
        return overlap(self.choices[one], self.choices[other])

    def __str__(self):
        names = list(self.choices)
        width = max(map(len, names), default=0)
        lines = [" " * width + "".join(f"  {name:>{max(5, len(name))}}" for name in names) + ("  later mass" if self.kept_mass else "")]
        for one in names:
            cells = "".join(f"  {self.overlap(one, other):>{max(5, len(other))}.3f}" for other in names)
            lines.append(f"{one:<{width}}{cells}" + (f"  {self.kept_mass[one]:>10.3f}" if self.kept_mass else ""))
        return "\n".join(lines)
