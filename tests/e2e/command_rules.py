"""How each command that the pages show fits a test: the least that is added to it, what it reads, and what its outcome must be.

A rule is called with the test, the words of the command (the program first) and the folder it runs in.
"""
import html.parser
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest
import urllib.request

import figures
from server import Server
from shown_commands import root_of_the_tree

ROOT = root_of_the_tree()
MODEL = str(ROOT / "models" / "ebb-recall.gguf")
# Not part of the tree: commands that name one are tested where it is there.
EMBEDDER = ROOT.parent / "shared" / "models" / "all-minilm-l6-v2-q8_0.gguf"
FACT = "The code of the north gate is 4711."
QUESTION = "What is the code of the north gate?"
REQUEST = {"messages": [{"role": "user", "content": QUESTION}]}
# Nothing takes as long; what hangs is ended.
TIMEOUT = 300


class Outcome:
    def __init__(self, words, folder, stdin=""):
        # A home of its own, so that no cache of this machine is read or written.
        home = {**os.environ, "HOME": str(folder), "XDG_CACHE_HOME": str(pathlib.Path(folder) / ".cache")}
        self.run = subprocess.run(words, cwd=folder, input=stdin, text=True, capture_output=True, timeout=TIMEOUT, env=home)
        self.out, self.err, self.code = self.run.stdout, self.run.stderr, self.run.returncode


class Page(html.parser.HTMLParser):
    """An HTML report: that it is whole, plots something and loads nothing."""

    def __init__(self, text):
        super().__init__()
        self.open, self.seen = [], set()
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.seen.add(tag)
        if tag not in ("meta", "br", "link", "hr", "img"):
            self.open.append(tag)
        for name, value in attributes:
            if name in ("src", "href") and not value.startswith("#"):
                raise figures.Nonsense(f"the page loads {value}")

    def handle_startendtag(self, tag, attributes):
        self.seen.add(tag)

    def handle_endtag(self, tag):
        if self.open.pop() != tag:
            raise figures.Nonsense(f"</{tag}> closes something else")


def replies_by_chat(test, words, folder):
    # Longer than a block, so that the store has what to keep.
    reading = "Read this: " + "The shepherd crossed the meadow before the rain began. " * 16
    said = "\n".join([FACT, reading, QUESTION, "/stats", "/quit", ""])
    outcome = Outcome([*words, "-n", "24", "--temp", "0"], folder, said)
    test.assertEqual(outcome.code, 0, outcome.err)
    test.assertIn("4711", outcome.out)
    if any("disk=" in word for word in words):
        cold = pathlib.Path(re.search(r"disk=([^,\s]+)", " ".join(words))[1])
        test.assertTrue(list(cold.glob("segment-*.ebb")), "the cold store on disk has no segment")


def answers_by_serve(test, words, _folder):
    test.assertEqual(words[2], "-m")
    with Server(words[0], *words[4:]) as server:
        body = {"messages": [{"role": "user", "content": f"{FACT} {QUESTION}"}], "temperature": 0, "max_tokens": 24}
        answer = post(server.url + "/v1/chat/completions", body)
        test.assertIn("4711", answer["choices"][0]["message"]["content"])
        prompt = answer["ebb"]["prompt"]
        test.assertEqual(sum(prompt.values()), answer["usage"]["prompt_tokens"])


def post(url, body):
    with urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode()), timeout=TIMEOUT) as answer:
        return json.load(answer)


def says(*patterns):
    def check(test, words, folder, stdin=""):
        outcome = Outcome(words, folder, stdin)
        test.assertEqual(outcome.code, 0, outcome.err)
        for pattern in patterns:
            test.assertRegex(outcome.out, pattern)

    return check


def runs(test, words, folder):
    # What the bundled model makes of words that it does not know need not end.
    if "-n" not in words:
        words = [*words, "-n", "64"]
    # A drawn first token may end the reply before a word of it: 14 times of 400 for a question about what nobody told.
    if "--temp" not in words:
        words = [*words, "--temp", "0"]
    says(r"\S")(test, words, folder)


def plays_the_demo(test, words, folder):
    outcome = Outcome(words, folder)
    test.assertEqual(outcome.code, 0, outcome.err)
    test.assertRegex(outcome.out, r"truncated: .*\[wrong\]")
    test.assertRegex(outcome.out, r"  ebb: .*4711\..*\[right\]")
    ours = [int(figure) for figure in re.search(r"^ebb +((?:\d+ +){7})", outcome.out, re.MULTILINE)[1].split()]
    session, budget, peak, _holes, evicted, recalled, computed = ours
    test.assertTrue(peak <= budget < session and evicted >= 10 and recalled > 0, outcome.out)
    # Whatever was evicted, no token was computed twice: recalls need no forward pass.
    test.assertLess(computed, session * 1.1)


class Bench:
    """`ebb bench NAME`: run once for all pages that show it alike, with --json and --html whether shown or not."""

    reports = {}

    def __init__(self, check, *least):
        self.check, self.least = check, least

    def __call__(self, test, words, folder):
        words = list(words)
        for flag, value in zip(self.least[::2], self.least[1::2]):
            if flag not in words:
                words += [flag, value]
        told = {flag: words[words.index(flag) + 1] for flag in ("--json", "--html") if flag in words}
        for flag, name in told.items():
            at = words.index(flag)
            del words[at : at + 2]
        key = tuple(words)
        if key not in self.reports:
            files = {flag: told.get(flag, f"report.{flag[2:]}") for flag in ("--json", "--html")}
            outcome = Outcome([*words, *(part for pair in files.items() for part in pair)], folder)
            test.assertEqual(outcome.code, 0, outcome.err[-2000:])
            test.assertTrue(outcome.out)
            report = json.loads((pathlib.Path(folder) / files["--json"]).read_text())
            page = Page((pathlib.Path(folder) / files["--html"]).read_text())
            test.assertEqual((page.open, bool(page.seen & {"svg", "table", "pre"})), ([], True))
            self.reports[key] = report
        report = self.reports[key]
        test.assertEqual(report["bench"], words[2])
        figures.check_numbers(report)
        self.check(report, words[0])


def alone(check):
    """A check that needs no second report."""
    return lambda report, _program: check(report)


SPEED = Bench(alone(figures.check_speed), "-m", MODEL, "--depths", "0,512", "--repeat", "3", "-n", "8")


def check_splice(report, program):
    """Beside the prompt speed of the speed bench, run for it where no test has yet."""
    if not any(key[2] == "speed" for key in Bench.reports):
        with tempfile.TemporaryDirectory() as folder:
            SPEED(unittest.TestCase(), [program, "bench", "speed"], folder)
    prompts = [
        line["ebb"]["tokens_per_s"]["max"]
        for key, speed in Bench.reports.items()
        if key[2] == "speed"
        for line in speed["models"][0]["lines"]
        if line["test"] == "prompt"
    ]
    figures.check_splice(report, max(prompts))


DOCUMENT = ("--tasks", "1", "--kinds", "niah,multifact,vt", "--parts", "4", "--length", "1024", "--questions", "last,tool")


def asks_documents(test, words, folder):
    """Lists of arms have policies of their own."""
    policies = () if {"--baselines", "--ablation"} & set(words) else ("--policies", "streaming")
    Bench(alone(figures.check_document), *DOCUMENT, *policies)(test, words, folder)


def asks_recall_tasks(test, words, folder):
    """One task of each case; --show asks nothing."""
    if "--show" in words:
        return says(r'"questions": \[')(test, words, folder)
    for flag, value in (("--kinds", "needle"), ("--haystacks", "sentences"), ("--lengths", "512"), ("--tasks", "1")):
        if flag in words:
            words[words.index(flag) + 1] = value if flag == "--tasks" else words[words.index(flag) + 1]
        else:
            words += [flag, value]
    says(r"needle +\S+ +yes +none +1 ")(test, words, folder)


def with_or_without_data(without, with_data):
    """Flags that make tasks of ours small are refused beside a file."""
    return lambda test, words, folder: (with_data if "--data" in words else without)(test, words, folder)


def explains(test, words, folder):
    embedding = [r"before its tail, embedding: looked at [1-9]\d* blocks"] if "--embedding-model" in words else []
    says(r"behind its tail, digest: looked at \d+ blocks", r"came back|too weak", *embedding)(test, words, folder)


def replays_agents(test, words, folder):
    """Recorded sessions are replayed to servers, with a random model where none is named; the bundled one is asked for facts."""
    small = ("-m", MODEL, "-t", "1", "--shares", "1,0.5", "--facts", "2") if "sessions.jsonl" in words else ()
    Bench(alone(figures.check_agent), *small)(test, words, folder)


LIMIT = alone(figures.check_limit)
LONGBENCH = alone(figures.check_longbench)

# By the words before the first flag. serve gets a free port from Server.
RULES = {
    "run": runs,
    "explain": explains,
    "chat": replies_by_chat,
    "serve": answers_by_serve,
    "key": says(r"^\S{20,}\n(.*\n)*sha256:[0-9a-f]{64}"),
    "key --hash": lambda test, words, folder: says(r"^sha256:[0-9a-f]{64}\n$")(test, words, folder, "a-plain-key-of-somebody\n"),
    "inspect": says(r"architecture +qwen3", r"fingerprint +[0-9a-f]{32}\n", r"context +16384", r"f16 +4096 "),
    "apply-template": lambda test, words, folder: says(r"<\|im_start\|>user\nWhat is")(test, words, folder, json.dumps(REQUEST)),
    "parse-reply": lambda test, words, folder: says(r"well|\"content\": ?\"Yes\.")(test, words, folder, "Yes. <tool_call>\n{\"name\": \"look\", \"arguments\": {\"into\": \"the well\"}}\n</tool_call>"),
    "policy list": says(r"snapkv +each head"),
    "policy show": says(r"looks at +attention of the last 32 queries"),
    "policy replay": says(r"evicted"),
    "demo": plays_the_demo,
    "bench speed": SPEED,
    "bench splice": Bench(check_splice, "-m", MODEL),
    "bench sparse": Bench(alone(figures.check_sparse), "-m", MODEL, "--depths", "2048", "--repeat", "1",
                          "--text-scored", "64", "--text-generated", "32"),
    "bench fidelity": Bench(alone(figures.check_fidelity), "--facts", "1", "--spans", "64", "--distances", "256"),
    "bench wall": Bench(alone(figures.check_wall), "--session", "4000", "--sections", "16",
                        "--questions", "4", "--kv-budget", "1024"),
    "bench concurrency": Bench(alone(figures.check_concurrency), "--repeat", "1", "-n", "16"),
    "bench agent": replays_agents,
    "bench edits": Bench(alone(figures.check_edits), "--cases", "1", "--lengths", "2048", "--recompute", "0,8", "--kinds", "changed,clock"),
    "bench gapfill": Bench(alone(figures.check_resend), "--sessions", "1", "--chunks", "10",
                           "--characters", "1000", "--budgets", "1024"),
    "bench baseline": Bench(alone(figures.check_resend), "--sessions", "1", "--turns", "14"),
    "bench evidence": Bench(alone(figures.check_evidence), "-m", MODEL, "--depths", "256", "-n", "8", "--prompts", "4"),
    "bench recall-tasks": asks_recall_tasks,
    "bench document": asks_documents,
    "bench policies": Bench(alone(figures.check_policies), "--tasks", "1", "--seeds", "1", "--kinds", "needle", "--parts", "8,2",
                            "--context", "512", "--text", "32"),
    "bench limit": with_or_without_data(
        Bench(LIMIT, "--kv-budget", "512", "--cache-size", "256", "--timeout", "5", "--prompt-tokens", "128", "-n", "32"),
        Bench(LIMIT, "--cache-size", "256", "--timeout", "5", "-n", "8")),
    "bench longbench": with_or_without_data(
        Bench(LONGBENCH, "--tasks", "1", "--context", "512", "--policies", "streaming;snapkv", "--budgets", "256,128"),
        Bench(LONGBENCH, "--policies", "streaming;snapkv", "--items", "2")),
}


def write_what_commands_read(folder):
    """The files that the pages' examples name."""
    for name, page in (("recording.json", "policy_replay.md"), ("budgets.json", "budget_file.md")):
        (folder / name).write_text((ROOT / "docs" / page).read_text().split("```")[1].removeprefix("json"))
    (folder / "notes.txt").write_text("Ada keeps the light house. " + "The shepherd crossed the meadow before the rain began. " * 64)
    asked = [
        {"role": "system", "content": "You are a coding agent. Read before you write."},
        {"role": "user", "content": f"{FACT} Look at the files."},
        {"role": "assistant", "content": "I will."},
        {"role": "user", "content": QUESTION},
    ]
    path = {"type": "object", "properties": {"path": {"type": "string", "maxLength": 8}}, "required": ["path"]}
    tools = [{"type": "function", "function": {"name": "read", "description": "Reads a file", "parameters": path}}]
    (folder / "recorded").mkdir()
    for n_messages in (2, 4):
        body = {"messages": asked[:n_messages], "tools": tools}
        (folder / "recorded" / f"{n_messages}.json").write_text(json.dumps(body))
    session = [{"role": "user", "system": asked[0]["content"], "content": f"{FACT} Look at the files.", "tools": tools}]
    for n in range(8):
        call = {"id": f"c{n}", "type": "function", "function": {"name": "read", "arguments": "{\"path\": \"notes\"}"}}
        session.append({"role": "assistant", "reasoning_content": f"I read part {n}.", "tool_calls": [call]})
        result = {"tool_call_id": f"c{n}", "content": "The shepherd crossed the meadow before the rain began. " * 8}
        session.append({"role": "tool", "tool_results": [result], "delay_seconds": 0.1})
    lines = [{"conversation_id": name, **line} for name in ("mend", "test") for line in session]
    (folder / "sessions.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    # What a llama-bench says, in the folder where pages name one.
    peer = folder / "ik_llama.cpp" / "build" / "bin" / "llama-bench"
    peer.parent.mkdir(parents=True)
    told = "".join(f"  {flag} <n>\n" for flag in ("-m", "-p", "-n", "-t", "-r", "-o"))
    said = json.dumps([{"build_commit": "abc1234", "build_number": 77, "avg_ts": 21.5}])
    peer.write_text(f"#!/bin/sh\nif [ \"$1\" = --help ]; then cat << 'END'\n{told}END\nelse echo '{said}'\nfi\n")
    peer.chmod(0o755)
    prompts = [{"prompt": f"{FACT} " * n} for n in (4, 8, 12, 16)]
    (folder / "prompts.jsonl").write_text("".join(json.dumps(prompt) + "\n" for prompt in prompts))
    paper = {"dataset": "qasper", "input": QUESTION, "context": f"{FACT} " * 20, "answers": ["4711"], "all_classes": None}
    (folder / "qasper.jsonl").write_text(json.dumps(paper) + "\n")
    (folder / "dataset2prompt.json").write_text(json.dumps({"qasper": "Article: {context}\n\nQuestion: {input}\nAnswer:"}))
    (folder / "war-and-peace.txt").write_text((ROOT / "docs" / "house.md").read_text())
