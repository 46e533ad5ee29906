#!/usr/bin/env python3
"""Anthropic's own Python client, unmodified, before a real `ebb serve`: messages, streams, tools, thinking, counts, errors.

    tests/e2e/anthropic_test.py EBB

Needs the package anthropic, which script/deps --tests puts into .venv; exit status 77 without it. The bundled model never
learned to call a tool or to think: grammars and templates make it.
"""
import pathlib
import sys
import tempfile
import unittest

from packages import need
from server import Server

anthropic = need("anthropic")

KEY = "a-key-for-tests"
BUDGET = ("--kv-budget", "1024", "-t", "1")
# The package has no temperature any more.
GREEDY = {"temperature": 0}
GATE = [
    {"role": "user", "content": "The code of the north gate is 4711."},
    {"role": "assistant", "content": [{"type": "text", "text": "Noted."}]},
    {"role": "user", "content": [{"type": "text", "text": "What is the code of the north gate?"}]},
]
READ = {
    "name": "read",
    "description": "Reads a file",
    "input_schema": {
        "type": "object",
        "properties": {"path": {"type": "string", "maxLength": 8}, "lines": {"type": "integer", "minimum": 0, "maximum": 99}},
        "required": ["path", "lines"],
    },
}
# A template that opens thinking unless it is told not to, as Qwen's do.
THINKING = (
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}\n{% endfor %}<|assistant|>"
    "{% if enable_thinking is defined and not enable_thinking %}<think></think>{% else %}<think>{% endif %}"
)

ebb = None


class Client(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(Server(ebb, *BUDGET, "--parallel", "2", "--api-key", KEY))

    def setUp(self):
        self.client = anthropic.Anthropic(base_url=self.server.url, api_key=KEY, max_retries=0, timeout=120)

    def ask(self, messages=GATE, **more):
        return self.client.messages.create(
            **{"model": "any", "messages": messages, "max_tokens": 24, "extra_body": GREEDY, **more}
        )

    def test_a_message_is_answered_whole_and_in_a_stream_alike(self):
        whole = self.ask()
        self.assertEqual([block.type for block in whole.content], ["text"])
        self.assertIn("4711", whole.content[0].text)
        self.assertEqual((whole.stop_reason, whole.stop_sequence), ("end_turn", None))
        with self.client.messages.stream(model="any", messages=GATE, max_tokens=24, extra_body=GREEDY) as stream:
            types = [event.type for event in stream]
            streamed = stream.get_final_message()
        self.assertEqual(streamed.content[0].text, whole.content[0].text)
        self.assertEqual(streamed.usage.output_tokens, whole.usage.output_tokens)
        self.assertEqual(types[0], "message_start")
        self.assertEqual(types[-3:], ["content_block_stop", "message_delta", "message_stop"])

    def test_all_of_a_prompt_is_counted_once(self):
        fresh = [{"role": "user", "content": "The shepherd crossed the quiet harbour. " * 20}]
        counted = self.client.messages.count_tokens(model="any", messages=fresh, system="Be brief.").input_tokens
        first = self.ask(fresh, system="Be brief.").usage
        self.assertEqual(
            (first.input_tokens, first.cache_creation_input_tokens, first.cache_read_input_tokens), (counted, 0, 0)
        )
        again = fresh + [{"role": "assistant", "content": "Yes."}, {"role": "user", "content": "Where was it?"}]
        counted = self.client.messages.count_tokens(model="any", messages=again, system="Be brief.").input_tokens
        second = self.ask(again, system="Be brief.").usage
        self.assertGreater(second.cache_read_input_tokens, first.input_tokens - 40)
        self.assertEqual(second.input_tokens + second.cache_read_input_tokens, counted)

    def test_what_is_marked_counts_as_created_and_then_as_read(self):
        mark = {"cache_control": {"type": "ephemeral"}}
        system = [{"type": "text", "text": "The warden keeps the bridge by night. " * 20, **mark}]
        first = self.ask(system=system).usage
        self.assertGreater(first.cache_creation_input_tokens, 100)
        self.assertGreater(first.input_tokens, 0)
        other = self.ask([{"role": "user", "content": "Who keeps the bridge?"}], system=system).usage
        self.assertEqual(other.cache_creation_input_tokens, 0)
        self.assertGreater(other.cache_read_input_tokens, first.cache_creation_input_tokens - 40)

    def test_tools_are_called_and_their_results_taken(self):
        how = {"tools": [READ], "tool_choice": {"type": "any", "disable_parallel_tool_use": True}, "max_tokens": 200}
        question = [{"role": "user", "content": "Read the file."}]
        whole = self.ask(question, **how)
        self.assertEqual((whole.stop_reason, [block.type for block in whole.content]), ("tool_use", ["tool_use"]))
        call = whole.content[0]
        self.assertEqual((call.name, call.input.keys()), ("read", {"path", "lines"}))
        how["extra_body"] = GREEDY
        with self.client.messages.stream(model="any", messages=question, **how) as stream:
            streamed = stream.get_final_message()
        self.assertEqual(streamed.content[0].input, call.input)
        result = {
            "type": "tool_result",
            "tool_use_id": call.id,
            "is_error": True,
            "content": [{"type": "text", "text": "The file is empty."}],
        }
        history = question + [
            {"role": "assistant", "content": whole.content},
            {"role": "user", "content": [result, {"type": "text", "text": "What now?"}]},
        ]
        self.assertIn(self.ask(history, tools=[READ]).stop_reason, ("end_turn", "max_tokens"))
        named = self.ask(question, tools=[READ], tool_choice={"type": "tool", "name": "read"}, max_tokens=200)
        self.assertEqual(named.content[0].name, "read")

    def test_what_is_cleared_of_the_context_is_told_and_recalled(self):
        wall = "The warden keeps the bridge by night. " * 14
        history = [{"role": "user", "content": "Read the files."}]
        for i, gate in enumerate(["north", "south", "east"]):
            use = {"type": "tool_use", "id": f"call{i}", "name": "read", "input": {"path": "a", "lines": 1}}
            text = f"The code of the {gate} gate is {4711 + i}. {wall}"
            result = {"type": "tool_result", "tool_use_id": use["id"], "content": text}
            history += [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
        history += [
            {"role": "assistant", "content": "Read."},
            {"role": "user", "content": "What is the code of the north gate?"},
        ]
        edit = {
            "type": "clear_tool_uses_20250919",
            "trigger": {"type": "input_tokens", "value": 200},
            "keep": {"type": "tool_uses", "value": 1},
        }
        how = {
            "model": "any",
            "messages": history,
            "betas": ["context-management-2025-06-27"],
            "context_management": {"edits": [edit]},
        }
        counted = self.client.beta.messages.count_tokens(**how)
        n_whole = counted.context_management.original_input_tokens
        how |= {"max_tokens": 24, "extra_body": GREEDY}
        answer = self.client.beta.messages.create(**how)
        applied = answer.context_management.applied_edits[0]
        self.assertEqual((applied.type, applied.cleared_tool_uses), (edit["type"], 2))
        self.assertEqual(applied.cleared_input_tokens, n_whole - counted.input_tokens)
        self.assertIn("4711", answer.content[0].text)
        self.assertGreater(answer.to_dict()["ebb"]["cleared_in_sight"], 0)
        with self.client.beta.messages.stream(**how) as stream:
            streamed = stream.get_final_message()
        self.assertEqual(streamed.context_management.applied_edits[0], applied)

    def test_a_stop_sequence_and_the_most_tokens_are_told(self):
        stopped = self.ask(stop_sequences=["4711"])
        self.assertEqual((stopped.stop_reason, stopped.stop_sequence), ("stop_sequence", "4711"))
        self.assertNotIn("4711", stopped.content[0].text)
        self.assertEqual(self.ask(max_tokens=2).stop_reason, "max_tokens")

    def test_what_the_assistant_began_goes_on(self):
        begun = GATE + [{"role": "assistant", "content": "The code of the north gate is"}]
        self.assertIn("4711", self.ask(begun).content[0].text)

    def test_json_of_a_schema_is_kept_to(self):
        schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
        answer = self.ask(output_config={"format": {"type": "json_schema", "schema": schema}}, max_tokens=60)
        self.assertRegex(answer.content[0].text, r'^\{"ok": ?(true|false)\}$')

    def test_a_request_says_how_it_recalls_and_is_told(self):
        answer = self.ask(extra_body={**GREEDY, "ebb": {"recall": {"blocks": 2, "explain": True}}})
        self.assertIn("recall", answer.model_extra["ebb"])

    def test_errors_are_those_that_the_client_knows(self):
        image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
        with self.assertRaises(anthropic.BadRequestError) as caught:
            self.ask([{"role": "user", "content": [image]}])
        self.assertEqual(caught.exception.type, "invalid_request_error")
        self.assertIn("messages[0].content[0].type", caught.exception.body["error"]["message"])
        self.assertIn("image", caught.exception.body["error"]["message"])
        with self.assertRaises(anthropic.AuthenticationError) as caught:
            self.client.with_options(api_key="a-wrong-one").messages.create(model="any", messages=GATE, max_tokens=1)
        self.assertEqual(caught.exception.type, "authentication_error")
        with self.assertRaises(anthropic.BadRequestError):
            self.ask(tool_choice={"type": "any"})

    def test_tools_of_anthropics_servers_are_left_out_and_told(self):
        search = {"type": "web_search_20250305", "name": "web_search"}
        answer = self.ask(tools=[search])
        self.assertIn("web_search", " ".join(answer.model_extra["ebb"]["warnings"]))


class Thinking(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        (folder / "thinking.jinja").write_text(THINKING)
        cls.server = cls.enterClassContext(Server(ebb, *BUDGET, "--chat-template-file", folder / "thinking.jinja"))
        cls.client = anthropic.Anthropic(base_url=cls.server.url, api_key="none", max_retries=0, timeout=120)

    def ask(self, thinking):
        # Budgets end thinking: the model does not know how.
        return self.client.messages.create(
            model="any", messages=GATE, max_tokens=24, thinking=thinking, extra_body=GREEDY
        )

    def test_thinking_is_a_block_of_its_own_within_its_budget(self):
        said = self.ask({"type": "enabled", "budget_tokens": 6})
        self.assertEqual(said.content[0].type, "thinking")
        self.assertTrue(said.content[0].thinking)
        self.assertTrue(said.content[0].signature)
        self.assertLessEqual(said.usage.output_tokens_details.thinking_tokens, 6 + 8)  # and its closing mark
        # It is taken back.
        history = GATE + [{"role": "assistant", "content": said.content}, {"role": "user", "content": "Again."}]
        self.client.messages.create(model="any", messages=history, max_tokens=4, thinking={"type": "disabled"})

    def test_thinking_may_be_hidden_or_off(self):
        hidden = self.ask({"type": "enabled", "budget_tokens": 6, "display": "omitted"})
        self.assertEqual((hidden.content[0].type, hidden.content[0].thinking), ("thinking", ""))
        off = self.ask({"type": "disabled"})
        self.assertNotIn("thinking", [block.type for block in off.content])


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    ebb = sys.argv.pop()
    unittest.main(verbosity=2)
