#!/usr/bin/env python3
"""Every command that README, CONTRIBUTING.md and docs/ show is typed, on the bundled model, and its figures are looked at.

    tests/e2e/commands_test.py EBB [--share=K/N]

The commands are read from the pages. RULES (command_rules.py) has, for each command, the least that makes it fit a test: fewer
rounds, smaller sizes, the bundled model for one of 1B parameters; all else is as shown. A command without a rule fails: add one.
"""
import json
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import unittest
import urllib.request

import figures
from command_rules import EMBEDDER, MODEL, ROOT, RULES, TIMEOUT, Outcome, write_what_commands_read
from server import Server
from shown_commands import Shown, commands_in_blocks, commands_in_sentences, examples_in_help

ebb = None

# Commands that only group others, and the heading of those in their help.
GROUPS = {"bench": "Benchmarks:", "policy": "Subcommands:"}

CHECKS = {
    "speed": figures.check_speed,
    "splice": figures.check_splice,
    "sparse": figures.check_sparse,
    "fidelity": figures.check_fidelity,
    "wall": figures.check_wall,
    "policies": figures.check_policies,
    "evidence": figures.check_evidence,
    "limit": figures.check_limit,
    "longbench": figures.check_longbench,
    "concurrency": figures.check_concurrency,
    "agent": figures.check_agent,
    "edits": figures.check_edits,
    "gapfill": figures.check_resend,
    "baseline": figures.check_resend,
    "recall-tasks": figures.check_recall_tasks,
    "document": figures.check_document,
}


def last_span(report):
    return report["kv_types"][0]["spans"][-1]


def make_prefill_free(report):
    """Forward passes that take no longer than a recall, with ratios to match."""
    moves = last_span(report)["moves"]
    moves["prefill"]["ms"] = {"min": 1e-3, "median": 1e-3, "max": 1e-3, "n": 3}
    for move in moves.values():
        move["prefill_ratio"] = 1e-3 / move["ms"]["median"]


# Recorded reports, and what spoils them.
NONSENSE = [
    ("2026-11-21-splice.json", make_prefill_free),
    ("2026-11-21-splice.json", lambda report: last_span(report).update(n_bytes=0)),
    ("2026-11-21-splice.json", lambda report: last_span(report)["moves"]["recall_ram"].update(prefill_ratio=1.0)),
    ("2026-11-21-speed-q4_k.json", lambda report: report["models"][0]["lines"][0]["ebb"]["tokens_per_s"].update(min=0.0)),
    ("2026-11-21-speed-q4_k.json", lambda report: report["models"][0]["lines"][0]["ratio"].update(median=1e3, max=1e3)),
    ("2026-11-21-sparse.json", lambda report: report["depths"][0]["arms"][1].update(peak_hot_tokens=10**6)),
    ("2026-11-21-fidelity.json", lambda report: report["cases"][0]["arms"]["reference"].update(facts_right=10**6)),
    ("2026-11-21-wall.json", lambda report: report["arms"][0].update(peak_hot_tokens=report["arms"][0]["budget_tokens"] + 1)),
    ("2026-11-21-wall.json", lambda report: report["arms"][0].update(right=report["arms"][0]["right"] + 1)),
    ("2026-11-24-agent.json", lambda report: report["runs"][0].update(n_computed=1)),
    ("2026-11-22-baseline.json", lambda report: report["cases"][0]["arms"][-1].update(peak_hot_tokens=10**6)),
    ("2026-11-22-concurrency.json", lambda report: report["lines"][0]["ebb"]["tokens_per_s"].update(max=float("inf"))),
    ("2026-11-24-sparse-prompts.json", lambda report: report["cases"][0].update(n_right=report["cases"][0]["n_right"] + 1)),
]


def everything_tested():
    return "\n".join(path.read_text() for folder in ("src", "tests") for path in (ROOT / folder).rglob("*_test.cc"))


class Commands(unittest.TestCase):
    """One test for each command shown; added below."""

    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        write_what_commands_read(self.folder)

    def type(self, shown):
        words = shown.words
        while re.fullmatch(r"[A-Z_]+=\S*", words[0]):  # variables before the command
            words = words[1:]
        if words[0] == "curl":
            return self.ask_as_curl(words)
        if words[0].startswith("script/"):
            return self.look_at_script(words)
        if words[0] in ("cmake", "ctest"):
            return self.look_at_presets(words)
        return self.run_ebb(shown, words)

    def run_ebb(self, shown, words):
        if "<" in words:
            del words[words.index("<") :]  # the rule says what is read
        subcommands = re.match(rf"(?:(?:{'|'.join(GROUPS)}) )?\S+(?: --hash)?", " ".join(words[1:]))[0]
        self.assertIn(subcommands, RULES, f"{shown} has no rule: say in tests/e2e/command_rules.py how it fits a test")
        words = [ebb, *words[1:]]
        if "embedder.gguf" in words and not EMBEDDER.exists():
            self.skipTest(f"no {EMBEDDER}")
        for at, word in enumerate(words):
            word = str(EMBEDDER) if word == "embedder.gguf" else word
            word = MODEL if word == "model.gguf" else word.replace("$HOME", str(self.folder))
            # The bundled model and templates are named from the root.
            words[at] = str(ROOT / word) if at and not word.startswith("-") and (ROOT / word).is_file() else word
        RULES[subcommands](self, words, self.folder)

    def look_at_script(self, words):
        outcome = Outcome([ROOT / words[0], "--help"], ROOT)
        self.assertEqual(outcome.code, 0, outcome.err)
        self.assertIn(words[0], outcome.out)
        if "--preset" in words:
            self.look_at_presets(words)
        if "-R" in words:
            names = "".join(re.findall(r"^TEST\w*\(.*$", everything_tested(), re.MULTILINE))
            for part in words[words.index("-R") + 1].split("|"):
                self.assertIn(part, names, f"no test's name has {part}")

    def look_at_presets(self, words):
        """Building is another test's; that presets and options are there is this one's."""
        if "--preset" in words:
            presets = json.loads((ROOT / "CMakePresets.json").read_text())
            kind = "buildPresets" if "--build" in words else "testPresets" if words[0] == "ctest" else "configurePresets"
            self.assertIn(words[words.index("--preset") + 1], [preset["name"] for preset in presets[kind]])
        known = "".join(path.read_text() for path in [ROOT / "CMakeLists.txt", *(ROOT / "cmake").glob("*.cmake")])
        for option in re.findall(r"-D(EBB_\w+|LLAMA_\w+)", " ".join(words)):
            self.assertIn(option, known)

    def ask_as_curl(self, words):
        """What the command sends, sent to a server of ours."""
        url = next(word for word in words[1:] if word.startswith("http"))
        body = next((words[at + 1] for at, word in enumerate(words) if word in ("-d", "--data")), None)
        with Server(ebb, "--kv-budget", "1024", "-n", "24") as server:
            asked = urllib.request.Request(re.sub(r"https?://[^/]+", server.url, url), body and body.encode())
            with urllib.request.urlopen(asked, timeout=TIMEOUT) as answer:
                self.assertEqual(answer.status, 200)
                self.assertTrue(answer.read())


class Regressions(unittest.TestCase):
    def test_short_spans_that_share_a_block_are_recalled_as_they_were(self):
        with tempfile.TemporaryDirectory() as folder:
            RULES["bench splice"](self, [ebb, "bench", "splice", "-m", MODEL, "--spans", "20,64"], folder)


class Mentions(unittest.TestCase):
    """Commands and flags that sentences and helps name: there, by the program's own help."""

    helps = {}

    def help_of(self, *names):
        if names not in self.helps:
            outcome = Outcome([ebb, *names, "--help"], ROOT)
            self.assertEqual(outcome.code, 0, f"ebb {' '.join(names)} --help: {outcome.err}")
            self.helps[names] = outcome.out
        return self.helps[names]

    def commands(self):
        def listed(text, heading):
            return re.findall(r"^  ([a-z][\w-]*) {2,}\S", text.partition(heading)[2].partition("Flags:")[0], re.MULTILINE)

        inside = [(group, name) for group, heading in GROUPS.items() for name in listed(self.help_of(group), heading)]
        return [(name,) for name in listed(self.help_of(), "Commands:")] + inside

    def check_flags(self, shown):
        words = [word for word in shlex.split(shown.text.replace("\\", "")) if not re.fullmatch(r"[A-Z_]+=\S*", word)]
        names = [word for word in words[1:3] if re.fullmatch(r"[a-z][a-z-]*|[A-Z]+", word)]
        if names and names[-1].isupper():  # "ebb bench NAME" speaks of all benches
            names = names[:-1]
        if len(names) == 2 and names[0] not in GROUPS:
            names = names[:1]
        told = self.help_of(*names)
        for flag in words[1 + len(names) :]:
            if re.fullmatch(r"-{1,2}[a-zA-Z][\w-]*", flag):
                self.assertRegex(told, rf"(?<![\w-]){re.escape(flag)}(?![\w-])", f"{shown}: no such flag")

    def test_what_sentences_name_is_there(self):
        for shown in commands_in_sentences(ROOT):
            with self.subTest(str(shown)):
                self.check_flags(shown)

    def test_each_command_explains_itself_with_examples_that_have_its_flags(self):
        self.assertGreater(len(self.commands()), 10)
        for names in self.commands():
            for example in examples_in_help(self.help_of(*names), f"ebb {' '.join(names)}"):
                with self.subTest(str(example)):
                    if example.words[0] == "curl":
                        continue
                    self.check_flags(example)

    def test_each_command_has_a_rule_and_is_shown(self):
        typed = [shown.words for shown in commands_in_blocks(ROOT) if shown.words[0] == "ebb"]
        shown = {" ".join(words[1 : 3 if words[1] in GROUPS else 2]) for words in typed}
        for names in self.commands():
            if names[-1] not in GROUPS:
                self.assertIn(" ".join(names), RULES)
                self.assertIn(" ".join(names), shown, "no page shows this command")


class LlamaFlags(unittest.TestCase):
    def test_the_table_of_flags_is_what_the_program_does(self):
        told = subprocess.run([ebb, "serve", "--llama-flags"], capture_output=True, text=True, check=True).stdout
        self.assertIn(told, (ROOT / "docs" / "llama_server.md").read_text())


class TheTestItself(unittest.TestCase):
    """That it reads the pages, refuses what it does not know, and sees nonsense where there is some."""

    def test_the_pages_show_commands(self):
        self.assertGreater(len(list(commands_in_blocks(ROOT))), 20)

    def test_a_command_without_a_rule_is_an_error_that_says_so(self):
        shown = Shown("README.md", 1, "ebb bench sorcery --json sorcery.json")
        with self.assertRaisesRegex(AssertionError, "README.md:1: ebb bench sorcery .* has no rule"):
            Commands().run_ebb(shown, shown.words)

    def test_recorded_figures_make_sense(self):
        for path in sorted((ROOT / "docs" / "benchmarks").glob("*.json")):
            report = json.loads(path.read_text())
            with self.subTest(path.name):
                figures.check_numbers(report)
                CHECKS[report["bench"]](report)

    def test_nonsense_is_seen(self):
        for name, change in NONSENSE:
            report = json.loads((ROOT / "docs" / "benchmarks" / name).read_text())
            change(report)
            with self.subTest(name), self.assertRaises(figures.Nonsense):
                figures.check_numbers(report)
                CHECKS[report["bench"]](report)


def add_tests(share):
    help_of_serve = Outcome([ebb, "serve", "--help"], ROOT).out
    curls = re.findall(r"^ +(curl .*)$", help_of_serve, re.MULTILINE)
    which, of = (int(number) for number in share.split("/"))
    for shown in list(commands_in_blocks(ROOT))[which - 1 :: of]:
        name = re.sub(r"\W+", "_", f"test_{shown.page}_{shown.line}_{shown.text}")[:120]
        setattr(Commands, name, lambda self, shown=shown: self.type(shown))
    for at, curl in enumerate(curls):
        setattr(Commands, f"test_help_of_serve_curl_{at}", lambda self, curl=curl: self.ask_as_curl(shlex.split(curl)))


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    ebb = sys.argv.pop(1)
    # Of N runs beside each other, each types every Nth command.
    share = sys.argv.pop(1).removeprefix("--share=") if sys.argv[1:] and sys.argv[1].startswith("--share=") else "1/1"
    add_tests(share)
    unittest.main(verbosity=2)
