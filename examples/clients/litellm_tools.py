#!/usr/bin/env python3
"""LiteLLM with ebb, by OpenAI's and by Anthropic's API: a message, a stream, a tool.

    ebb serve &
    pip install litellm
    examples/clients/litellm_tools.py http://127.0.0.1:8080

A proxy of LiteLLM takes the same in its file: litellm.yaml beside this one.
"""
import json
import sys

import litellm

READ = {
    "type": "function",
    "function": {
        "name": "read",
        "description": "Reads the notes",
        "parameters": {"type": "object", "properties": {"lines": {"type": "boolean"}}, "required": ["lines"]},
    },
}
HISTORY = [
    {"role": "user", "content": "The code of the north gate is 4711."},
    {"role": "assistant", "content": "Noted."},
    {"role": "user", "content": "What is the code of the north gate?"},
]


def main(url: str, api_key: str = "none") -> None:
    for model, base in (("openai/ebb", url + "/v1"), ("anthropic/ebb", url)):
        how = {"model": model, "api_base": base, "api_key": api_key, "max_tokens": 200}
        print(model, "answer:", litellm.completion(messages=HISTORY, **how).choices[0].message.content)
        parts = litellm.completion(messages=HISTORY, stream=True, **how)
        print(model, "stream:", "".join(part.choices[0].delta.content or "" for part in parts))
        asked = [{"role": "user", "content": "Read the notes."}]
        called = litellm.completion(messages=asked, tools=[READ], tool_choice="required", **how).choices[0].message
        call = called.tool_calls[0]
        print(model, "call:", call.function.name, json.loads(call.function.arguments))


if __name__ == "__main__":
    main(*(sys.argv[1:] or ["http://127.0.0.1:8080"]))
