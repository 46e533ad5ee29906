#!/usr/bin/env python3
"""The package ebb_policy as it is built, without numpy and, where it is there, with it.

    python/ebb_policy_test.py FOLDER        FOLDER: where the build put the package (build/release/python)
"""
import itertools
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
folder = pathlib.Path(sys.argv.pop(1)).resolve() if len(sys.argv) > 1 else sys.exit(__doc__)
sys.path.insert(0, str(folder))

import ebb_policy as ep  # noqa: E402: its folder is said on the command line

try:
    import numpy
except ImportError:
    numpy = None

LAYERS, HEADS, PROMPT, TOKENS = 2, 2, 20, 32


def attention(rng, queries, tokens):
    def row(last):
        weights = [rng.choice((0.0, 0.25, 1.0, rng.random())) if t <= last else 0.0 for t in range(tokens)]
        return weights

    return [[[row(tokens - queries + q) for q in range(queries)] for _ in range(HEADS)] for _ in range(LAYERS)]


def keys(rng, tokens):
    return [[[[rng.gauss(0, 1) for _ in range(4)] for _ in range(tokens)] for _ in range(HEADS)] for _ in range(LAYERS)]


def recorded(seed, grain=1):
    """A recording, and the same as [layer][head][query][token] of all its queries."""
    rng = random.Random(seed)
    recording, rows = ep.Recording(LAYERS, HEADS, grain), [[[] for _ in range(HEADS)] for _ in range(LAYERS)]
    for queries, tokens in [(PROMPT, PROMPT)] + [(1, t) for t in range(PROMPT + 1, TOKENS + 1)]:
        step = attention(rng, queries, tokens)
        recording.add(step, keys(rng, queries))
        for layer, head in itertools.product(range(LAYERS), range(HEADS)):
            rows[layer][head] += [row + [0.0] * (TOKENS - tokens) for row in step[layer][head]]
    return recording, rows


def keep_highest(scores, n):
    """The n highest, the newer of equals, ascending."""
    return tuple(sorted(sorted(range(len(scores)), key=lambda t: (-scores[t], -t))[:n]))


class Policies(unittest.TestCase):
    def test_all_are_listed_with_their_parameters_and_each_makes_itself(self):
        names = [policy.name for policy in ep.list_policies()]
        self.assertIn("snapkv", names)
        self.assertEqual(len(names), len(set(names)))
        for policy in ep.list_policies():
            given = ",".join(f"{p.name}={p.least}" for p in policy.parameters)
            self.assertEqual(ep.show_policy(f"{policy.name}:{given}" if given else policy.name).name, policy.name)
        self.assertEqual(ep.show_policy("snapkv:kernel=5,window=16").spec, "snapkv:window=16")

    def test_what_is_none_is_refused_with_what_there_is(self):
        with self.assertRaisesRegex(ep.NotFound, "there are streaming"):
            ep.show_policy("foo")
        with self.assertRaisesRegex(ValueError, "window .1 to 512, default 32"):
            ep.show_policy("snapkv:foo=1")
        with self.assertRaisesRegex(ep.InvalidArgument, "must be a string"):
            ep.show_policy(5)


def looks_beyond_recordings(policy):
    return any(policy.asks[what] for what in ("reread", "ranges", "value_means", "output_lengths", "expected"))


def made_up(policy, rng, n_blocks, grain):
    """Evidence with every column, of random numbers."""
    n_scopes = {"session": 1, "layer": LAYERS, "head": LAYERS * HEADS}[policy.scope]
    numbers = lambda: [[rng.random() for _ in range(n_blocks)] for _ in range(n_scopes)]
    vectors = lambda: [[[rng.uniform(-1, 1) for _ in range(4)] for _ in range(n_blocks)] for _ in range(n_scopes)]
    columns = {name: numbers() for name in ("total", "window_mean", "window_max", "last", "reread", "key_norm", "output_length",
                                              "expected", "expected_value", "value_length")}
    columns["n_queries"] = [[1.0 + rng.randrange(9) for _ in range(n_blocks)] for _ in range(n_scopes)]
    columns.update({name: vectors() for name in ("key_direction", "key_mean", "value_mean")})
    if 0 < policy.asks["slice"] < grain:
        slices = lambda: [[[rng.random() for _ in range(grain // policy.asks["slice"])] for _ in range(n_blocks)] for _ in range(n_scopes)]
        columns.update({f"slice_{name}": slices() for name in ("total", "n_queries", "window_mean", "window_max", "last")})
    for kind in ("key", "value"):
        for name, sign in (("least", -1), ("greatest", 1)):
            columns[f"{kind}_{name}"] = [[[sign + x for x in row] for row in rows] for rows in columns[f"{kind}_mean"]]
    begin = list(range(0, n_blocks * grain, grain))
    return ep.Evidence(begin, [b + grain for b in begin], scope=policy.scope, n_layers=LAYERS, n_kv_heads=HEADS, grain=grain, **columns)


class Choices(unittest.TestCase):
    def test_every_policy_chooses_from_evidence_that_is_made_up_and_keeps_the_budget(self):
        for seed, grain in [(1, 1), (2, 4)]:
            for policy in ep.list_policies():
                choice = made_up(policy, random.Random(seed), 16, grain).choose(policy.name, budget_tokens=6 * grain)
                kept = sum(map(len, choice.kept_by_head))
                self.assertEqual(kept, (16 if policy.name == "none" else 6) * LAYERS * HEADS, policy.name)

    def test_a_policy_that_looks_beyond_a_recording_says_so_and_is_refused_without_its_evidence(self):
        recording, _ = recorded(1)
        beyond = [policy for policy in ep.list_policies() if looks_beyond_recordings(policy)]
        self.assertIn("kvzip", [policy.name for policy in beyond])
        for policy in beyond:
            with self.assertRaisesRegex(ep.InvalidArgument, "recordings of attention and keys have not"):
                recording.choose(policy.name, budget_tokens=12)
            with self.assertRaises(ep.InvalidArgument):
                ep.Evidence([0, 1], [1, 2], scope="head").choose(policy.name, budget_tokens=1)

    def test_every_policy_keeps_the_budget_and_loses_nothing(self):
        for seed, grain in [(1, 1), (2, 4)]:
            recording, _ = recorded(seed, grain)
            for policy in ep.list_policies():
                if looks_beyond_recordings(policy):
                    continue
                choice = recording.choose(policy.name, budget_tokens=12)
                n_blocks = -(-TOKENS // grain)
                kept = sum(map(len, choice.kept_by_head))
                self.assertEqual(kept, (n_blocks if policy.name == "none" else 12 // grain) * LAYERS * HEADS, policy.name)
                for stay, leave in zip(choice.kept, choice.evicted):
                    self.assertEqual(sorted(stay + leave), list(range(n_blocks)), policy.name)

    def test_tova_h2o_and_snapkv_keep_what_their_definitions_keep(self):
        for seed in range(5):
            recording, rows = recorded(seed)
            tova = recording.choose("tova", budget_tokens=10)
            h2o = recording.choose("h2o:recent=0", budget_tokens=10)
            snapkv = recording.choose("snapkv:window=8,kernel=1", budget_tokens=10)
            for layer in range(LAYERS):
                last = [sum(rows[layer][head][-1][t] for head in range(HEADS)) for t in range(TOKENS)]
                self.assertEqual(tova.kept[layer], keep_highest(last, 10))
                for head in range(HEADS):
                    of_head, at = rows[layer][head], layer * HEADS + head
                    totals = [sum(row[t] for row in of_head) for t in range(TOKENS)]
                    for score, total in zip(h2o.scores[at], totals):
                        self.assertAlmostEqual(score, total, places=5)
                    # Who came since the window's queries counts as much as the others do on average, over the queries that saw it.
                    seen = [sum(row[t] for row in of_head[-8:]) for t in range(TOKENS)]
                    for t in range(TOKENS - 8):
                        self.assertAlmostEqual(snapkv.scores[at][t], seen[t] / 8, places=5)
                    self.assertEqual(snapkv.kept[at], keep_highest(snapkv.scores[at], 10))

    def test_scores_of_ones_own_choose_as_a_policy_with_the_same_scores_does(self):
        recording, _ = recorded(3)
        for name in ("h2o", "tova", "snapkv:window=8", "adakv:window=8", "pyramidkv:window=8", "keydiff", "knorm"):
            policy = ep.show_policy(name)
            ours = recording.choose(name, budget_tokens=10, sinks=2, recent=3)
            mine = recording.evidence(name).hold(sinks=2, recent=3).choose(
                ours.scores, budget_tokens=10, sharing=policy.sharing, floor=policy.floor
            )
            self.assertEqual((mine.kept, mine.evicted), (ours.kept, ours.evicted), name)
            self.assertEqual(ep.overlap(mine, ours), 1.0)

    def test_a_function_sees_the_rows_of_each_scope_and_chooses(self):
        recording, rows = recorded(4)
        seen = []

        def by_last(scope):
            seen.append((scope.layer, scope.head, len(scope), scope.begin[5]))
            return list(scope.last)

        choice = recording.choose(by_last, budget_tokens=10)
        self.assertEqual(seen, [(layer, head, TOKENS, 5) for layer in range(LAYERS) for head in range(HEADS)])
        for at, kept in enumerate(choice.kept):
            self.assertEqual(kept, keep_highest(rows[at // HEADS][at % HEADS][-1], 10))
        never = recording.choose(lambda scope: [float("inf")] * len(scope), budget_tokens=10)
        self.assertTrue(all(len(kept) == TOKENS for kept in never.kept))

    def test_comparisons_tell_overlap_and_what_later_queries_look_at(self):
        recording, _ = recorded(5)
        later = attention(random.Random(9), 3, TOKENS + 3)
        comparison = recording.compare({"all": "none", "h2o": "h2o", "mine": lambda s: list(s.total)}, budget_tokens=10, later=later)
        self.assertEqual(comparison.overlap("h2o", "all"), 1.0)
        self.assertAlmostEqual(comparison.overlap("all", "h2o"), 10 / TOKENS)
        self.assertEqual(comparison.kept_mass["all"], 1.0)
        self.assertLess(comparison.kept_mass["h2o"], 1.0)
        self.assertIn("later mass", str(comparison))

    def test_layers_and_heads_with_other_blocks_each_are_chosen_from_step_by_step(self):
        evidence = ep.Evidence([0, 1, 2, 3], [1, 2, 3, 4], n_kv_heads=2, rows=[[0, 2], [1, 2, 3]], total=[[5, 1], [1, 2, 3]],
                               n_queries=[[4, 2], [3, 2, 1]])
        choice = evidence.choose("h2o:recent=0", keep_frames=3)
        self.assertEqual(choice.kept, ((0, 2), (3,)))
        self.assertEqual(choice.evicted, ((), (1, 2)))

    def test_wrong_shapes_and_values_are_refused_in_words(self):
        recording, _ = recorded(6)
        wrong = {
            "shape": lambda: recording.add([[[[1.0]]]]),
            "rows of several lengths": lambda: recording.add([[[[1.0], [1.0, 2.0]]] * 2] * 2),
            "number is expected": lambda: recording.add([[[["x"] * (TOKENS + 1)]] * HEADS] * LAYERS),
            "behind 32": lambda: recording.add([[[[1.0] * TOKENS]] * HEADS] * LAYERS),
            "give budget_tokens or keep_frames": lambda: recording.choose("tova"),
            "Field 'keep_frames'": lambda: recording.choose("tova", keep_frames=-1),
            "scores of 1 scopes": lambda: recording.evidence("h2o").choose([[1.0]], budget_tokens=4),
            "chooses by layer": lambda: recording.evidence("h2o").choose("tova", budget_tokens=4),
            "array 'total' is missing": lambda: recording.evidence(last=True).choose("h2o", budget_tokens=4),
            "array 'scores': nan": lambda: recording.choose(lambda s: [float("nan")] * len(s), budget_tokens=4),
            "scores has the shape": lambda: recording.choose(lambda s: [1.0], budget_tokens=4),
            "stand in order": lambda: ep.Evidence([5, 0], [6, 1], scope="session").choose("recency", keep_frames=1),
            "chooses by session": lambda: ep.Evidence([0], [1]).choose("recency", keep_frames=1),
            "no column is called foo": lambda: ep.Evidence([0], [1], foo=[1]),
            "hold must be of none": lambda: ep.Evidence([0], [1], hold=["x"]),
            "array 'hold': 9": lambda: ep.Evidence([0], [1], hold=[9], scope="session").choose("recency", keep_frames=1),
            "must be a number from 0 to 1": lambda: recording.choose(lambda s: s.last, budget_tokens=4, floor=2),
            "was not asked for": lambda: recording.choose(lambda s: s.key_norm, budget_tokens=4),
        }
        for words, act in wrong.items():
            with self.subTest(words), self.assertRaises((ep.InvalidArgument, AttributeError)) as caught:
                act()
            self.assertIn(words, str(caught.exception))
        keyless = ep.Recording()
        keyless.add([[[[1.0]]]])
        with self.assertRaisesRegex(ep.InvalidArgument, "this needs keys"):
            keyless.choose("knorm", budget_tokens=1)
        with self.assertRaisesRegex(ep.InvalidArgument, "steps"):
            ep.Recording().choose("h2o", budget_tokens=1)

    def test_random_questions_never_do_anything_but_answer_or_refuse(self):
        from ebb_policy import _library

        rng = random.Random(7)
        names = ["begin", "end", "hold", "n_rows", "row_block", "total", "n_queries", "window_mean", "last", "scores", "key_direction",
                 "key_norm", "reread", "key_least", "key_greatest", "key_mean", "value_least", "value_greatest", "value_mean", "output_length", "expected", "expected_value", "value_length", "steps", "attention", "keys", "sums", "victims", "source", "priority"]
        odd = [0, 1, 2, 3, 7, 64, -1, 1e300, float("inf"), float("nan"), 0.5, 2**31, 1e-300]
        n_answers = 0
        for _ in range(3000):
            question = {"ask": rng.choice(["choose", "observe", "rescue", "shifts", "rotation_table"])}
            for field in rng.sample(["policy", "scope", "n_layers", "n_kv_heads", "grain", "keep_frames", "n_key_dims", "n_value_dims", "head_dim",
                                     "block_size", "n_blocks", "n_rows", "theta", "totals", "last", "window", "keys"], rng.randrange(5)):
                question[field] = rng.choice(["h2o", "tova", "knorm", "keydiff", "lagkv", "dropkv", "rkv", "kvzip", "defensivekv", "head", "layer", True, 0, 1, 2, 3, -5, 1e9, 1024, [], {}])
            arrays = {name: _library.array("d", (rng.choice(odd) for _ in range(rng.choice((0, 1, 2, 4, 8)))))
                      for name in rng.sample(names, rng.randrange(6))}
            try:
                _library.ask(question, arrays)
                n_answers += 1
            except ep.Error as error:
                self.assertTrue(str(error))
        self.assertGreater(n_answers, 0)


class AreasScheme(unittest.TestCase):
    CONFIG = {"start_size": 4, "recent_size": 8, "max_cache_size": 24, "aggregation_mode": "NORM_SUM", "apply_rotation": True,
              "snapkv_window_size": 0, "kvcrush_config": {"budget": 1, "anchor_point_mode": "RANDOM", "rng_seed": 3}}

    def test_step_by_step_is_what_a_replay_of_the_same_steps_says(self):
        rng = random.Random(1)
        areas, steps, cached = ep.Areas(4, 2, 40, self.CONFIG), [], 0
        for n in [40] + [1] * 30:
            cached += n
            scores = [[rng.random() for _ in range(cached)] for _ in range(2)]
            steps.append({"prompt": n == 40, "scores": scores})
            areas.register_scores(scores)
            steps[-1]["evicted"] = areas.evict()
            cached = areas.cached
        self.assertLess(cached, 40)
        evicted = [step.pop("evicted") for step in steps]
        recording = {"block_size": 4, "n_layers": 2, "cache_eviction_config": self.CONFIG, "steps": steps}
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(recording, file)
            file.flush()
            report = ep.replay(file.name)
        self.assertEqual(report, ep.replay(recording))
        n_shifts = 0
        for told, layers in zip(report["steps"], evicted, strict=True):
            for layer, one in zip(told["layers"], layers, strict=True):
                self.assertEqual((layer["evicted"], layer["rescued"]), (list(one.evicted), list(one.rescued)))
                self.assertEqual(layer["rotation"], [{"from": s.origin, "to": s.place, "tokens": s.tokens} for s in one.shifts])
                n_shifts += len(one.shifts)
        self.assertGreater(n_shifts, 0)

    def test_a_copy_goes_its_own_way_and_a_reset_begins_anew(self):
        areas = ep.Areas(4, 1, 40, self.CONFIG)
        areas.register_scores([[1.0] * 40])
        areas.evict()
        copy = areas.copy()
        copy.register_scores([[1.0] * 41])
        copy.evict()
        self.assertEqual((areas.cached, copy.processed), (40, 41))
        self.assertLess(copy.cached, 40)
        areas.reset(8)
        self.assertEqual((areas.processed, areas.cached), (0, 0))
        del areas
        self.assertEqual(copy.processed, 41)

    def test_diversity_is_wanted_and_checked(self):
        config = {"start_size": 4, "recent_size": 4, "max_cache_size": 16, "aggregation_mode": "ADAPTIVE_RKV", "snapkv_window_size": 0}
        areas = ep.Areas(4, 1, 23, config)
        areas.register_scores([[1.0] * 23])
        areas.evict()
        n = areas.wanted_diversity(1)
        self.assertGreater(n, 0)
        areas.register_scores([[1.0] * 24])
        with self.assertRaisesRegex(ep.InvalidArgument, "need"):
            areas.evict()
        areas.register_diversity(0, [[0.5] * n] * (n // 4))
        self.assertGreater(len(areas.evict()[0].evicted), 0)

    def test_what_has_no_meaning_is_refused_with_the_schemes_own_words(self):
        wrong = {
            "no multiple of the block size": lambda: ep.Areas(5, 1, 10, self.CONFIG),
            "is not known here": lambda: ep.Areas(4, 1, 10, {"max_size": 5}),
            "Field 'block_size'": lambda: ep.Areas("x", 1, 10),
            "Field 'prompt_tokens'": lambda: ep.Areas(4, 1, 0, self.CONFIG),
            "written as JSON": lambda: ep.replay({"block_size": float("nan")}),
            "no whole blocks": lambda: ep.rescue_blocks([1, 2, 3], [0], block_size=2, budget=1),
            "ascending": lambda: ep.rescue_blocks([1, 2, 3, 4], [1, 0], block_size=2, budget=1),
            "array 'scores': nan": lambda: ep.Areas(4, 1, 2, self.CONFIG).register_scores([[1.0, float("nan")]]),
            "there is no such block": lambda: ep.find_shifts(3, [3], 4),
            "make it larger": lambda: ep.find_shifts(5, [0, 1], 4, n_rows=2),
            "even number of dimensions": lambda: ep.rotation_table(2, 4, 7),
        }
        for words, act in wrong.items():
            with self.subTest(words), self.assertRaises(ep.Error) as caught:
                act()
            self.assertIn(words, str(caught.exception))

    def test_keys_are_turned_back_by_whole_blocks(self):
        import math

        table = ep.rotation_table(n_rows=3, block_size=4, head_dim=2, theta=10000.0)
        x, y = table.turn_back([1.0, 0.0], row=2)
        self.assertAlmostEqual(x, math.cos(8), places=6)
        self.assertAlmostEqual(y, -math.sin(8), places=6)


@unittest.skipIf(numpy is None, "no numpy")
class WithNumpy(unittest.TestCase):
    def test_arrays_of_any_type_and_order_are_the_same_numbers(self):
        rng = random.Random(1)
        weights = attention(rng, 6, 6)
        choices = []
        for made in (weights, numpy.array(weights), numpy.asfortranarray(numpy.array(weights, dtype="float32"))):
            recording = ep.Recording(LAYERS, HEADS)
            recording.add(made)
            choices.append(recording.choose("tova", budget_tokens=3).kept)
        self.assertEqual(choices[0], choices[1])
        with self.assertRaisesRegex(ep.InvalidArgument, "shape"):
            ep.Recording(LAYERS, HEADS).add(numpy.zeros((2, 2)))


class Package(unittest.TestCase):
    def test_the_readme_is_true(self):
        blocks = re.findall(r"^```python\n(.*?)^```$", (HERE / "README.md").read_text(), re.MULTILINE | re.DOTALL)
        self.assertGreater(len(blocks), 4)
        exec("\n".join(blocks), {})  # it prints what a notebook would show

    def test_without_its_library_the_package_says_how_to_build_it(self):
        code = "import os, sys; sys.path.insert(0, sys.argv[1]); os.environ['EBB_POLICY_LIBRARY'] = '/nowhere.so'; import ebb_policy"
        run = subprocess.run([sys.executable, "-c", code, str(folder)], capture_output=True, text=True)
        self.assertEqual(run.returncode, 1)
        self.assertIn("/nowhere.so is missing: build it", run.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
