#!/usr/bin/env python3
"""What clients of llama.cpp's server read, before a real `ebb serve`: ids, progress and timings in streams, where the window
ended a reply, /infill, and counts that add up.

    tests/e2e/llama_test.py EBB
"""
import json
import pathlib
import struct
import sys
import tempfile
import unittest
import urllib.error
import urllib.request

from server import ROOT, Server

BUDGET = ("--kv-budget", "1024", "-t", "1", "--parallel", "1")
READING = "Read this: " + "The shepherd crossed the quiet harbour before the rain. " * 24

ebb = None


def post(server, path, body):
    request = urllib.request.Request(server.url + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            return answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.read().decode()


def ask(server, path, body):
    return json.loads(post(server, path, {"temperature": 0, **body}))


def stream(server, path, body):
    lines = post(server, path, {"temperature": 0, "stream": True, **body}).splitlines()
    return [json.loads(line[6:]) for line in lines if line.startswith("data: ") and line != "data: [DONE]"]


def with_fill_tokens(folder, **ids):
    """The bundled model, whose file says that these tokens are there to fill in the middle."""

    def text(value):
        return struct.pack("<Q", len(value)) + value.encode()

    keys = [text(f"tokenizer.ggml.{name}_token_id") + struct.pack("<II", 4, id) for name, id in ids.items()]
    # What is put in front of the other keys is a multiple of 32 bytes, so that tensors stay aligned.
    filler = text("general.filler") + struct.pack("<I", 8)
    n_missing = -(sum(map(len, keys)) + len(filler) + 8) % 32
    keys.append(filler + text("x" * n_missing))
    model = (ROOT / "models" / "ebb-recall.gguf").read_bytes()
    magic, version, n_tensors, n_keys = struct.unpack("<4sIQQ", model[:24])
    path = pathlib.Path(folder) / "fill.gguf"
    path.write_bytes(struct.pack("<4sIQQ", magic, version, n_tensors, n_keys + len(keys)) + b"".join(keys) + model[24:])
    return path


class Streams(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(Server(ebb, *BUDGET))

    def test_parts_have_the_ids_of_their_tokens_asked_for_or_not(self):
        body = {"prompt": "The code of the north gate is", "n_predict": 12}
        whole = ask(self.server, "/completion", {**body, "return_tokens": True})
        self.assertEqual(len(whole["tokens"]), 12)
        self.assertEqual(ask(self.server, "/completion", body)["tokens"], [])
        for more in ({}, {"return_tokens": True}, {"n_probs": 2}, {"return_progress": True}):
            parts = stream(self.server, "/completion", {**body, **more})
            self.assertEqual(sum((part["tokens"] for part in parts), []), whole["tokens"], more)
            self.assertEqual("completion_probabilities" in parts[-2], "n_probs" in more)
            self.assertEqual([part["tokens"] for part in parts if "prompt_progress" in part and part["tokens"]], [])
            self.assertFalse(parts[-1]["generation_settings"]["post_sampling_probs"])

    def test_timings_come_with_progress_too(self):
        asks = {"return_progress": True, "timings_per_token": True, "max_tokens": 4}
        chat = {"messages": [{"role": "user", "content": READING}]}
        for path, body in (("/v1/chat/completions", chat), ("/v1/completions", {"prompt": READING}), ("/completion", {"prompt": READING})):
            parts = [part for part in stream(self.server, path, {**body, **asks}) if "prompt_progress" in part]
            self.assertGreaterEqual(len(parts), 2, path)
            for part in parts:
                self.assertLessEqual(part["timings"]["predicted_n"], 1, path)
            self.assertEqual(parts[-1]["timings"]["cache_n"], parts[-1]["prompt_progress"]["cache"])
            unasked = stream(self.server, path, {**body, "return_progress": True, "max_tokens": 4})
            self.assertEqual([part for part in unasked if "prompt_progress" in part and "timings" in part], [])

    def test_responses_tell_progress_and_timings_in_their_events(self):
        body = {"input": READING, "max_output_tokens": 6}
        self.assertIn("predicted_ms", ask(self.server, "/v1/responses", body)["timings"])
        events = stream(self.server, "/v1/responses", {**body, "input": READING + " Now.", "return_progress": True, "timings_per_token": True})
        told = [event for event in events if "prompt_progress" in event]
        self.assertGreaterEqual(len(told), 2)
        self.assertEqual({event["type"] for event in told}, {"response.in_progress"})
        usage = events[-1]["response"]["usage"]
        self.assertEqual(told[-1]["prompt_progress"]["processed"], usage["input_tokens"])
        self.assertEqual(told[-1]["prompt_progress"]["cache"], usage["input_tokens_details"]["cached_tokens"])
        words = [event for event in events if event["type"] == "response.output_text.delta"]
        self.assertTrue(words and all("timings" in event for event in words + told))
        self.assertEqual(events[-1]["response"]["timings"]["predicted_n"], usage["output_tokens"])
        self.assertEqual([event["sequence_number"] for event in events], list(range(len(events))))
        unasked = stream(self.server, "/v1/responses", body)
        self.assertEqual([event for event in unasked if "prompt_progress" in event or "timings" in event], [])

    def test_counts_of_a_prompt_sum_to_it_after_calls_that_came_back_otherwise(self):
        tool = {
            "type": "function",
            "function": {
                "name": "read",
                "parameters": {
                    "type": "object",
                    "properties": {"path": {"type": "string", "maxLength": 8}, "n": {"type": "integer", "maximum": 99, "minimum": 0}},
                    "required": ["path", "n"],
                },
            },
        }
        history = [{"role": "user", "content": "Read it."}]
        for _ in range(3):
            body = {"messages": history, "tools": [tool], "tool_choice": "required", "parallel_tool_calls": False, "max_tokens": 200}
            answer = ask(self.server, "/v1/chat/completions", body)
            usage, prompt = answer["usage"], answer["ebb"]["prompt"]
            self.assertEqual(sum(prompt.values()), usage["prompt_tokens"], prompt)
            cached = [prompt[name] for name in ("hot", "partly_hot", "shared", "recalled_exact", "recalled_approximate")]
            self.assertEqual(usage["prompt_tokens_details"]["cached_tokens"], sum(cached), prompt)
            message = answer["choices"][0]["message"]
            call = message["tool_calls"][0]
            call["function"]["arguments"] = json.dumps(json.loads(call["function"]["arguments"]), indent=1)
            history = history + [message, {"role": "tool", "tool_call_id": call["id"], "content": "Nothing."}]


class Window(unittest.TestCase):
    def test_a_reply_that_the_window_ended_is_truncated_and_no_other(self):
        with Server(ebb, *BUDGET, "-c", "128") as server:
            body = {"prompt": "The code of the north gate is", "ignore_eos": True}
            ended = ask(server, "/completion", body)
            self.assertEqual(ended["tokens_evaluated"] + ended["tokens_predicted"], 128)
            self.assertEqual((ended["truncated"], ended["stop_type"]), (True, "limit"))
            self.assertTrue(stream(server, "/completion", body)[-1]["truncated"])
            self.assertTrue(ask(server, "/completion", {**body, "n_predict": 1000})["truncated"])
            limited = ask(server, "/completion", {**body, "n_predict": 5})
            self.assertEqual((limited["truncated"], limited["stop_type"]), (False, "limit"))
            self.assertEqual(ask(server, "/v1/completions", body)["choices"][0]["finish_reason"], "length")


class Infill(unittest.TestCase):
    def test_a_model_without_the_tokens_says_which_are_missing(self):
        with Server(ebb, *BUDGET) as server:
            error = ask(server, "/infill", {})["error"]
            self.assertEqual((error["code"], error["type"]), (501, "not_supported_error"))
            self.assertIn("Infill is not supported by this model: prefix token is missing. suffix token is missing.", error["message"])

    def test_the_middle_is_asked_for_between_what_stands_before_and_behind_it(self):
        with tempfile.TemporaryDirectory() as folder:
            model = with_fill_tokens(folder, fim_pre=300, fim_suf=301, fim_mid=302)
            with Server(ebb, *BUDGET, model=model) as server:
                pre, suf, mid = (json.loads(post(server, "/detokenize", {"tokens": [id]}))["content"] for id in (300, 301, 302))
                body = {"input_prefix": "int main() {\n", "input_suffix": "}\n", "prompt": "  return", "n_predict": 4}
                answer = ask(server, "/infill", body)
                self.assertEqual(answer["prompt"], f"{pre}int main() {{\n  return{suf}}}\n{mid}")
                self.assertEqual(answer["tokens_predicted"], 4)
                extra = [{"filename": "a.h", "text": "int f();\n"}]
                self.assertIn("int f();\n" + pre, ask(server, "/infill", {**body, "input_extra": extra})["prompt"])
                self.assertEqual("".join(part["content"] for part in stream(server, "/infill", body)), answer["content"])
                for wrong, name in (({}, "input_prefix"), ({"input_prefix": ""}, "input_suffix"), ({**body, "input_extra": [{}]}, "input_extra[0].text"), ({**body, "prompt": 5}, "prompt")):
                    error = ask(server, "/infill", wrong)["error"]
                    self.assertEqual((error["code"], error["param"]), (400, name))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    ebb = sys.argv.pop()
    unittest.main(verbosity=2)
