#!/usr/bin/env python3
"""Clients as people install them, unmodified, before a real `ebb serve`: each gets an answer, and no request is refused.

    tests/e2e/clients_test.py EBB FOLDER

script/clients installs them into FOLDER and calls this; a client that is not there is skipped, and where none is, the exit status is 77. The bundled
model answers nonsense to an agent's prompt of some ten thousand tokens; grammars make it call tools (forcing_proxy.py), and then the client has to run
the tool and to send its result.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import urllib.request

from forcing_proxy import ForcingProxy
from server import ROOT, Server

EXAMPLES = ROOT / "examples" / "clients"
SKIPPED = 77
TIMEOUT = 600
QUESTION = "What is the code of the north gate?"
NOTE = "The code of the north gate is 4711."

ebb = None
folder = None


class Clients(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(Server(ebb, "--kv-budget", "4096"))
        cls.home = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))

    def program(self, package, name):
        path = folder / package / "node_modules" / ".bin" / name
        if not path.exists():
            path = folder / package / "bin" / name
        if not path.exists():
            self.skipTest(f"{name} is not in {folder}")
        return path

    def counted(self, name):
        with urllib.request.urlopen(self.server.url + "/metrics") as answer:
            lines = answer.read().decode().splitlines()
        return sum(float(line.split()[-1]) for line in lines if line.startswith(name))

    @property
    def work(self):
        """The folder that clients run in."""
        work = self.home / "work"
        work.mkdir(exist_ok=True)
        (work / "note.txt").write_text(NOTE + "\n")
        return work

    def forcing(self, tool, arguments):
        """What clients are to speak to, so that the model calls the tool first."""
        return self.enterContext(ForcingProxy(self.server.url, tool, arguments))

    def assert_result_came_back(self, proxy):
        self.assertGreater(proxy.forced, 0, "no request had the tool")
        self.assertTrue(any(NOTE in result for result in proxy.results), (proxy.results, proxy.statuses))
        self.assertEqual(set(proxy.statuses), {200})

    def run_client(self, command, **variables):
        before = self.counted("ebb:requests_total")
        refused = self.counted("ebb:http_refused_total")
        done = subprocess.run(
            command,
            cwd=self.work,
            env={"PATH": os.environ["PATH"], "HOME": str(self.home), "TERM": "dumb", **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
        )
        told = done.stdout + done.stderr
        self.assertEqual(done.returncode, 0, told[-2000:])
        self.assertGreater(self.counted("ebb:requests_total"), before, told[-2000:])
        self.assertEqual(self.counted("ebb:http_refused_total"), refused, told[-2000:])
        self.assertTrue(done.stdout.strip(), told[-2000:])
        return done.stdout

    def configured(self, name, url):
        """A file of the examples, with this address."""
        return (EXAMPLES / name).read_text().replace("http://127.0.0.1:8080", url)

    def test_langchain(self):
        python = self.program("python", "python")
        told = self.run_client([python, EXAMPLES / "langchain_tools.py", self.server.url + "/v1"])
        self.assertEqual(told.count("4711"), 3, told)
        self.assertIn("call: read {'lines': ", told)
        self.assertIn("structured: is_known=", told)

    def test_litellm(self):
        python = self.program("python", "python")
        told = self.run_client([python, EXAMPLES / "litellm_tools.py", self.server.url])
        for api in ("openai", "anthropic"):
            for what in ("answer: The code of the north gate is 4711", "stream: The code of the north gate is 4711", "call: read {"):
                self.assertIn(f"{api}/ebb {what}", told)

    def test_qwen_code(self):
        program = self.program("qwen-code", "qwen")
        proxy = self.forcing("read_file", {"file_path": str(self.work / "note.txt")})
        (self.home / ".qwen").mkdir(exist_ok=True)
        (self.home / ".qwen" / "settings.json").write_text(self.configured("qwen_code.json", proxy.url))
        self.run_client([program, "-p", QUESTION])
        self.assert_result_came_back(proxy)

    def test_codex(self):
        program = self.program("codex", "codex")
        proxy = self.forcing("exec_command", {"cmd": "cat note.txt"})
        (self.home / ".codex").mkdir(exist_ok=True)
        (self.home / ".codex" / "config.toml").write_text(self.configured("codex.toml", proxy.url))
        self.run_client([program, "exec", "--skip-git-repo-check", QUESTION])
        self.assert_result_came_back(proxy)

    def test_opencode(self):
        program = self.program("opencode", "opencode")
        proxy = self.forcing("read", {"filePath": str(self.work / "note.txt")})
        (self.work / "opencode.json").write_text(self.configured("opencode.json", proxy.url))
        self.run_client([program, "run", QUESTION])
        self.assert_result_came_back(proxy)

    def test_claude_code(self):
        program = self.program("claude-code", "claude")
        proxy = self.forcing("Read", {"file_path": str(self.work / "note.txt")})
        (self.home / ".claude").mkdir(exist_ok=True)
        (self.home / ".claude" / "settings.json").write_text(self.configured("claude_code.json", proxy.url))
        self.run_client([program, "-p", QUESTION])
        self.assert_result_came_back(proxy)

    def test_aider(self):
        program = self.program("aider", "aider")
        shutil.copy(EXAMPLES / "aider.model.metadata.json", self.home)
        self.run_client(
            [program, "--openai-api-base", self.server.url + "/v1", "--openai-api-key", "none", "--model", "openai/ebb",
             "--model-metadata-file", self.home / "aider.model.metadata.json", "--no-git", "--yes-always", "--no-check-update",
             "--no-analytics", "--message", QUESTION]
        )


class Files(unittest.TestCase):
    def test_examples_are_read_and_name_the_same_server(self):
        for path in EXAMPLES.iterdir():
            text = path.read_text()
            if path.suffix == ".json":
                json.loads(text)
            if path.name != "aider.model.metadata.json":
                self.assertIn("http://127.0.0.1:8080", text, path)
            self.assertIn(path.name, (ROOT / "docs" / "clients.md").read_text())


if __name__ == "__main__":
    ebb, folder = pathlib.Path(sys.argv.pop(1)).resolve(), pathlib.Path(sys.argv.pop(1)).resolve()
    if not folder.is_dir():
        print(f"skipped: no clients in {folder}; script/clients installs them")
        sys.exit(SKIPPED)
    unittest.main(verbosity=2)
