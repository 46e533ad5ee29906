#!/usr/bin/env python3
"""LangChain with ebb: a message, a stream, a tool that is called and answered, a structured answer.

    ebb serve &
    pip install langchain-openai
    examples/clients/langchain_tools.py http://127.0.0.1:8080/v1

The bundled model never learned to call tools: `tool_choice="any"` makes it, by a grammar. Models that did learn it need none.
"""
import sys

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import BaseModel


@tool
def read(lines: bool) -> str:
    """Reads the notes, with or without numbers of lines."""
    return "The code of the north gate is 4711."


class Answer(BaseModel):
    is_known: bool


def main(base_url: str, api_key: str = "none") -> None:
    model = ChatOpenAI(base_url=base_url, api_key=api_key, model="ebb", temperature=0, max_tokens=200)
    history = [
        HumanMessage("The code of the north gate is 4711."),
        AIMessage("Noted."),
        HumanMessage("What is the code of the north gate?"),
    ]
    print("answer:", model.invoke(history).content)
    print("stream:", "".join(chunk.content for chunk in model.stream(history)))

    calling = model.bind_tools([read], tool_choice="any", parallel_tool_calls=False)
    messages = [HumanMessage("Read the notes.")]
    called = calling.invoke(messages)
    call = called.tool_calls[0]
    print("call:", call["name"], call["args"])
    messages += [called, ToolMessage(read.invoke(call["args"]), tool_call_id=call["id"])]
    messages.append(HumanMessage("What is the code of the north gate?"))
    print("behind it:", model.bind_tools([read], tool_choice="none").invoke(messages).content)

    structured = model.with_structured_output(Answer, method="json_schema")
    print("structured:", structured.invoke("Is it known?"))


if __name__ == "__main__":
    main(*(sys.argv[1:] or ["http://127.0.0.1:8080/v1"]))
