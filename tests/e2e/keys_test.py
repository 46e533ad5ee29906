#!/usr/bin/env python3
"""Several keys before a real `ebb serve`: keys that change while it runs, what one key may have, and what is told of requests.

    tests/e2e/keys_test.py EBB
"""
import json
import pathlib
import re
import signal
import sys
import tempfile
import threading
import unittest
import urllib.error
import urllib.request

from server import Server

BUDGET = ("--kv-budget", "1024", "-t", "1")

ebb = None


def ask(server, path, body=None, key=None, headers=None):
    """Status, headers and text of an answer."""
    request = urllib.request.Request(server.url + path, data=None if body is None else json.dumps(body).encode())
    for name, value in {"X-Api-Key": key, **(headers or {})}.items():
        if value:
            request.add_header(name, value)
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            return answer.status, answer.headers, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers, error.read().decode()


def chat(text, **more):
    return {"messages": [{"role": "user", "content": text}], "temperature": 0, "max_tokens": 8, **more}


class KeysThatChange(unittest.TestCase):
    def setUp(self):
        self.file = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory())) / "keys.txt"
        self.file.write_text("alpha\nbeta\n")
        self.server = self.enterContext(Server(ebb, *BUDGET, "--parallel", "2", "--api-key-file", self.file))

    def status(self, key):
        return ask(self.server, "/v1/sessions", key=key)[0]

    def read_again(self):
        self.server.process.send_signal(signal.SIGHUP)
        return self.server.read_line_with("ebb: ")

    def test_a_hangup_has_the_file_read_again_and_a_sick_one_changes_nothing(self):
        self.assertEqual([self.status(key) for key in ("alpha", "beta", "gamma")], [200, 200, 401])
        self.file.write_text("alpha\ngamma\n")
        self.assertIn("may ask from now on: 2", self.read_again())
        self.assertEqual([self.status(key) for key in ("alpha", "beta", "gamma")], [200, 401, 200])
        for sick in ("alpha\nsha256:123\n", "# nobody\n"):
            self.file.write_text(sick)
            self.assertIn("the keys stay as they were", self.read_again())
            self.assertEqual([self.status(key) for key in ("alpha", "gamma")], [200, 200])
        self.file.unlink()
        self.assertIn("the keys stay as they were", self.read_again())
        self.assertEqual(self.status("alpha"), 200)

    def test_a_stream_goes_on_when_its_key_is_taken_away(self):
        body = chat("Tell me of the north gate.", stream=True, max_tokens=200, ignore_eos=True)
        request = urllib.request.Request(self.server.url + "/v1/chat/completions", data=json.dumps(body).encode())
        request.add_header("X-Api-Key", "beta")
        with urllib.request.urlopen(request, timeout=120) as stream:
            self.assertTrue(stream.readline())
            self.file.write_text("alpha\n")
            self.assertIn("may ask from now on: 1", self.read_again())
            self.assertEqual(self.status("beta"), 401)
            self.assertIn("data: [DONE]", stream.read().decode())


class WhatOneKeyMayHave(unittest.TestCase):
    def test_a_key_has_half_of_the_sessions_and_who_has_most_makes_room(self):
        keys = ("--api-key", "alpha", "--api-key", "beta")
        with Server(ebb, *BUDGET, "--max-sessions", "4", *keys) as server:
            for i in range(5):
                headers = {"x-session-id": f"s{i}"}
                self.assertEqual(ask(server, "/v1/chat/completions", chat(f"Hello {i}"), "alpha", headers)[0], 200)
            sessions = {key: json.loads(ask(server, "/v1/sessions", key=key)[2])["data"] for key in ("alpha", "beta")}
            self.assertEqual([len(sessions[key]) for key in ("alpha", "beta")], [2, 0])
            self.assertEqual(sorted(session["id"].split("~")[0] for session in sessions["alpha"]), ["s3", "s4"])


class OneCacheKey(unittest.TestCase):
    def test_conversations_of_one_prompt_cache_key_run_at_once_and_keep_their_sessions(self):
        system = {"role": "system", "content": "You keep watch at the gates of the harbour. " * 8}
        said = {name: [system, {"role": "user", "content": f"The code of the {name} gate is 4711."}] for name in ("north", "south", "west")}
        with Server(ebb, *BUDGET, "--parallel", "3") as server:
            answers = {}

            def turn(name, **more):
                body = {"messages": said[name], "prompt_cache_key": "all", "temperature": 0, "max_tokens": 8, **more}
                answers[name] = json.loads(ask(server, "/v1/chat/completions", body)[2])

            together = [threading.Thread(target=turn, args=(name,)) for name in said]
            for thread in together:
                thread.start()
            for thread in together:
                thread.join()
            for name, messages in said.items():
                messages.append(answers[name]["choices"][0]["message"])
                messages.append({"role": "user", "content": "And now?"})
            for name in said:
                turn(name)
                self.assertGreater(answers[name]["ebb"]["prompt"]["hot"], 40, name)
                self.assertLess(answers[name]["ebb"]["prompt"]["new"], 64, name)
            self.assertEqual(len(json.loads(ask(server, "/v1/sessions")[2])["data"]), 3)


class WhatIsTold(unittest.TestCase):
    def test_each_request_is_a_line_with_the_id_of_its_answer_and_without_its_words(self):
        with Server(ebb, *BUDGET, "--api-key", "a-secret-key", "--log-requests") as server:
            _, headers, _ = ask(server, "/v1/chat/completions", chat("a secret word"), "a-secret-key")
            line = server.read_line_with("/v1/chat/completions")
            self.assertRegex(line, r"^ebb: " + re.escape(headers["x-request-id"]) + r" POST /v1/chat/completions 200 [0-9.]+ ms$")
            _, headers, _ = ask(server, "/v1/completions?q=secret", {"prompt": "secret"}, "wrong", {"x-request-id": "mine-1"})
            self.assertEqual(headers["x-request-id"], "mine-1")
            line = server.read_line_with("mine-1")
            self.assertIn("POST /v1/completions 401", line)
            self.assertNotIn("secret", line)

    def test_latencies_are_histograms_whose_buckets_add_up(self):
        with Server(ebb, *BUDGET) as server:
            for text in ("Hello", "Good morning"):
                self.assertEqual(ask(server, "/v1/chat/completions", chat(text, ignore_eos=True))[0], 200)
            metrics = ask(server, "/metrics")[2]
        counts = {}
        for name in ("queue", "time_to_first_token", "time_per_output_token", "recall"):
            self.assertIn(f"# TYPE ebb:{name}_seconds histogram", metrics)
            below = [int(n) for n in re.findall(rf'^ebb:{name}_seconds_bucket{{le="[^"]+"}} (\d+)$', metrics, re.M)]
            counts[name] = int(re.search(rf"^ebb:{name}_seconds_count (\d+)$", metrics, re.M)[1])
            self.assertEqual(below, sorted(below))
            self.assertEqual(below[-1], counts[name])
            self.assertGreaterEqual(float(re.search(rf"^ebb:{name}_seconds_sum (\S+)$", metrics, re.M)[1]), 0.0)
        self.assertEqual(counts, {"queue": 2, "time_to_first_token": 2, "time_per_output_token": 14, "recall": 0})


if __name__ == "__main__":
    ebb = sys.argv.pop(1)
    unittest.main()
