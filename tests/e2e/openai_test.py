#!/usr/bin/env python3
"""OpenAI's own Python client, unmodified, before a real `ebb serve`: chats, streams, tools, formats, Responses, errors.

    tests/e2e/openai_test.py EBB

Needs the package openai, which script/deps --tests puts into .venv; exit status 77 without it. The bundled model never
learned to call a tool: grammars make it.
"""
import json
import sys
import unittest

from packages import need
from server import Server

openai = need("openai")
BaseModel = need("pydantic").BaseModel

KEY = "a-key-for-tests"
BUDGET = ("--kv-budget", "1024", "-t", "1")
GATE = [
    {"role": "user", "content": "The code of the north gate is 4711."},
    {"role": "assistant", "content": "Noted."},
    {"role": "user", "content": "What is the code of the north gate?"},
]
READ = {
    "type": "function",
    "function": {
        "name": "read",
        "description": "Reads a file",
        "parameters": {
            "type": "object",
            "properties": {"path": {"type": "string", "maxLength": 8}, "lines": {"type": "integer", "minimum": 0, "maximum": 99}},
            "required": ["path", "lines"],
        },
    },
}

ebb = None


class Verdict(BaseModel):
    ok: bool
    colour: bool


class Client(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(Server(ebb, *BUDGET, "--parallel", "2", "--api-key", KEY))

    def setUp(self):
        self.client = openai.OpenAI(base_url=self.server.url + "/v1", api_key=KEY, max_retries=0, timeout=120)

    def chat(self, messages=GATE, **more):
        return self.client.chat.completions.create(
            **{"model": "any", "messages": messages, "temperature": 0, "max_tokens": 24, **more}
        )

    def test_a_chat_is_answered_whole_and_in_a_stream_alike(self):
        whole = self.chat()
        self.assertIn("4711", whole.choices[0].message.content)
        self.assertEqual(whole.choices[0].finish_reason, "stop")
        self.assertRegex(whole._request_id, r"^req_[0-9a-f]{18}$")
        self.assertEqual(self.chat(max_tokens=1, extra_headers={"X-Request-Id": "mine-1"})._request_id, "mine-1")
        self.assertEqual(whole.usage.total_tokens, whole.usage.prompt_tokens + whole.usage.completion_tokens)
        chunks = list(self.chat(stream=True, stream_options={"include_usage": True}))
        text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
        self.assertEqual(text, whole.choices[0].message.content)
        self.assertEqual(chunks[-1].usage.completion_tokens, whole.usage.completion_tokens)

    def test_tools_are_called_and_their_results_taken(self):
        how = {"tools": [READ], "tool_choice": "required", "parallel_tool_calls": False, "max_tokens": 200}
        question = [{"role": "user", "content": "Read the file."}]
        choice = self.chat(question, **how).choices[0]
        self.assertEqual(choice.finish_reason, "tool_calls")
        (call,) = choice.message.tool_calls
        self.assertEqual(call.function.name, "read")
        self.assertEqual(json.loads(call.function.arguments).keys(), {"path", "lines"})
        deltas = [chunk.choices[0].delta for chunk in self.chat(question, stream=True, **how)]
        pieces = [delta.tool_calls[0].function for delta in deltas if delta.tool_calls]
        self.assertEqual(pieces[0].name, "read")
        self.assertEqual("".join(piece.arguments for piece in pieces), call.function.arguments)
        result = {"role": "tool", "tool_call_id": call.id, "content": "The file is empty."}
        history = question + [choice.message.model_dump(exclude_none=True), result]
        self.assertIn(self.chat(history, tools=[READ]).choices[0].finish_reason, ("stop", "length"))

    def test_functions_of_old_are_called_whole_and_in_a_stream_alike(self):
        how = {"functions": [READ["function"]], "function_call": {"name": "read"}, "max_tokens": 200}
        question = [{"role": "user", "content": "Read the file."}]
        choice = self.chat(question, **how).choices[0]
        self.assertEqual(choice.finish_reason, "function_call")
        self.assertIsNone(choice.message.tool_calls)
        call = choice.message.function_call
        self.assertEqual((call.name, json.loads(call.arguments).keys()), ("read", {"path", "lines"}))
        chunks = list(self.chat(question, stream=True, **how))
        pieces = [chunk.choices[0].delta.function_call for chunk in chunks if chunk.choices[0].delta.function_call]
        self.assertEqual(pieces[0].name, "read")
        self.assertEqual("".join(piece.arguments for piece in pieces), call.arguments)
        self.assertEqual(chunks[-1].choices[0].finish_reason, "function_call")
        result = {"role": "function", "name": "read", "content": "The file is empty."}
        history = question + [choice.message.model_dump(exclude_none=True), result]
        answer = self.chat(history, functions=[READ["function"]])
        self.assertIn(answer.choices[0].finish_reason, ("stop", "length"))
        self.assertEqual(sum(answer.model_extra["ebb"]["prompt"].values()), answer.usage.prompt_tokens)

    def test_json_of_a_schema_becomes_an_object(self):
        answer = self.client.chat.completions.parse(
            model="any",
            messages=[{"role": "user", "content": "Say something."}],
            response_format=Verdict,
            temperature=0,
            max_tokens=60,
        )
        self.assertIsInstance(answer.choices[0].message.parsed, Verdict)

    def test_chances_and_several_choices_are_told(self):
        answer = self.chat(n=2, temperature=1.0, seed=1, logprobs=True, top_logprobs=2, max_tokens=4)
        self.assertEqual([choice.index for choice in answer.choices], [0, 1])
        for choice in answer.choices:
            for token in choice.logprobs.content:
                self.assertLessEqual(token.logprob, 0.0)
                self.assertEqual(len(token.top_logprobs), 2)

    def test_texts_are_completed(self):
        answer = self.client.completions.create(
            model="any", prompt=["The code of", "A"], max_tokens=3, temperature=0, logprobs=1
        )
        self.assertEqual(len(answer.choices), 2)
        self.assertEqual(len(answer.choices[0].logprobs.tokens), len(answer.choices[0].logprobs.token_logprobs))

    def test_responses_are_made_whole_and_in_a_stream_alike(self):
        how = {"model": "any", "input": GATE, "temperature": 0, "max_output_tokens": 24}
        whole = self.client.responses.create(**how)
        self.assertEqual(whole.status, "completed")
        self.assertIn("4711", whole.output_text)
        with self.client.responses.stream(**how) as stream:
            types = [event.type for event in stream]
            self.assertEqual(stream.get_final_response().output_text, whole.output_text)
        self.assertEqual((types[0], types[-1]), ("response.created", "response.completed"))
        with self.client.responses.stream(**how, extra_body={"return_progress": True, "timings_per_token": True}) as stream:
            events = list(stream)
            self.assertEqual(stream.get_final_response().output_text, whole.output_text)
        self.assertTrue(any("prompt_progress" in event.model_extra for event in events if event.type == "response.in_progress"))
        tool = {"type": "function", **READ["function"], "strict": False}
        called = self.client.responses.create(
            **{**how, "input": "Read the file.", "tools": [tool], "tool_choice": "required", "max_output_tokens": 200},
            parallel_tool_calls=False,
        )
        self.assertEqual([(item.type, item.name) for item in called.output], [("function_call", "read")])

    def test_a_request_chooses_what_leaves_and_the_list_says_what_there_is(self):
        there = self.client.get("/policies", cast_to=object)
        allowed = [policy["name"] for policy in there["data"] if policy["allowed"]]
        self.assertIn("snapkv", allowed)
        # More than the budget, so that something leaves.
        reading = {"role": "user", "content": "Read this: " + "The shepherd crossed the quiet harbour before the rain. " * 150}
        history = [GATE[0], GATE[1], reading, {"role": "assistant", "content": "I did."}, GATE[2]]
        for policy in allowed:
            how = {"extra_body": {"kv_eviction": policy}, "extra_headers": {"x-session-id": f"policy-{policy}"}}
            self.chat(history[:1], **how)
            answer = self.chat(history, **how)
            told = answer.model_extra["ebb"]
            self.assertEqual(told["kv_eviction"], policy)
            self.assertLessEqual(told["hot_tokens"], told["budget_tokens"])
            self.assertGreater(told["evicted_blocks"], 0, policy)
            # The fact stands in the first block, which leaves while the request reads on, unless a policy holds the first tokens.
            if policy in ("streaming", "scored", "evoke"):
                self.assertIn("4711", answer.choices[0].message.content, policy)
        with self.assertRaises(openai.BadRequestError) as caught:
            self.chat(extra_body={"kv_eviction": "snapkv:windows=16"})
        self.assertIn("window (1 to 512, default 32)", caught.exception.message)
        self.assertEqual(caught.exception.param, "kv_eviction")

    def test_errors_are_those_that_the_client_knows(self):
        with self.assertRaises(openai.BadRequestError) as caught:
            self.chat(extra_body={"reasoning_budget_tokens": "many"})
        self.assertIn("reasoning_budget_tokens", caught.exception.message)
        self.assertEqual(caught.exception.type, "invalid_request_error")
        with self.assertRaises(openai.BadRequestError):
            self.chat(stream=True, response_format={"type": "yaml"})
        with self.assertRaises(openai.AuthenticationError):
            self.client.with_options(api_key="a-wrong-one").chat.completions.create(model="any", messages=GATE)
        with self.assertRaises(openai.NotFoundError):
            self.client.get("/nowhere", cast_to=object)


class Overload(unittest.TestCase):
    def test_a_full_queue_is_a_rate_limit(self):
        with Server(ebb, *BUDGET, "--parallel", "1", "--max-queued", "1") as server:
            client = openai.OpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0, timeout=120)

            # Streams say their first word when they are taken in. Neither ends by itself.
            def begin():
                endless = {"grammar": 'root ::= "a" root'}
                stream = client.chat.completions.create(
                    model="any", messages=GATE, stream=True, max_tokens=1000000, extra_body=endless
                )
                return stream, next(iter(stream))

            running, _ = begin()
            while not next(iter(running)).choices[0].delta.content:
                pass
            waiting, _ = begin()
            with self.assertRaises(openai.RateLimitError) as caught:
                begin()
            self.assertEqual(caught.exception.response.headers["retry-after"], "1")
            waiting.close()
            running.close()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    ebb = sys.argv.pop()
    unittest.main(verbosity=2)
