"""Requests of OpenAI's Responses API, as requests for a chat completion.

Fields that chat completions have under the same name, and fields that are not known, are passed on as they are.
docs/doors.md lists what is translated, left out and refused.
"""

from collections.abc import Mapping
from typing import Any

from bpac.wire.chat_messages import Conversation
from bpac.wire.request_fields import Fields, refuse_several_answers
from bpac.wire.responses.item_reading import read_items
from bpac.wire.responses.tool_reading import read_tool, read_tool_choice

# What ``include`` calls the log-probabilities of the answer.
LOGPROBS = "message.output_text.logprobs"

# Fields that are translated, or that have nothing to say to a model: ``store`` because nothing is stored,
# ``max_tool_calls`` because it limits tools that run at OpenAI, ``stream_options`` because it pads events.
_READ = frozenset({
    "input", "instructions", "max_output_tokens", "text", "reasoning", "tools", "tool_choice", "include", "stream",
    "stream_options", "store", "max_tool_calls", "truncation", "background", "previous_response_id", "conversation",
    "prompt", "context_management", "moderation", "top_logprobs",
})  # fmt: skip
_NOT_KEPT = (
    "cannot be used: this gateway keeps no conversations. Send the earlier items of the conversation in input, "
    "as with store = false"
)


def read_request(body: Mapping[str, Any]) -> dict[str, Any]:
    """The same request for a chat completion; ``RequestError`` if it cannot be read or expressed.

    >>> read_request({"model": "homework", "input": "6 * 7?", "max_output_tokens": 50})
    {'model': 'homework', 'messages': [{'role': 'user', 'content': '6 * 7?'}], 'max_tokens': 50}
    """
    fields = Fields(body)
    _refuse(fields)
    chat: dict[str, Any] = {"model": fields.needed_text("model"), "messages": _messages(fields)}
    chat |= fields.others(_READ | {"model"})
    if (most := fields.whole("max_output_tokens", 1)) is not None:
        chat["max_tokens"] = most  # the name that most servers understand; token_limit of a model changes it
    chat |= _logprobs(fields)
    chat |= _format(fields)
    if (reasoning := fields.object("reasoning")) is not None and (effort := reasoning.text("effort")) is not None:
        chat["reasoning_effort"] = effort
    if tools := [read_tool(tool) for tool in fields.objects("tools")]:
        chat["tools"] = tools
    if (choice := read_tool_choice(fields)) is not None and (tools or choice not in ("auto", "none")):
        chat["tool_choice"] = choice  # without tools, servers refuse any, and these two ask for nothing
    if fields.flag("stream"):
        chat |= {"stream": True, "stream_options": {"include_usage": True}}
    return chat


def _refuse(fields: Fields) -> None:
    """Refuse what only a server that keeps conversations, or OpenAI's own, can do."""
    refuse_several_answers(fields)
    for name in ("previous_response_id", "conversation"):
        if fields.get(name) is not None:
            raise fields.unsupported(name, _NOT_KEPT)
    if fields.flag("background"):
        raise fields.unsupported("background", "cannot be true: this gateway answers while the caller waits")
    if fields.get("prompt") is not None:
        raise fields.unsupported("prompt", "cannot be used: templates of prompts are kept at OpenAI; send the text")
    for name in ("context_management", "moderation"):
        if fields.get(name):
            raise fields.unsupported(name, "cannot be used: only OpenAI's own servers do this; leave it out")
    if (truncation := fields.text("truncation")) not in (None, "disabled"):
        what = f"cannot be {truncation!r}: this gateway shortens no conversations; leave it out"
        raise fields.unsupported("truncation", what)
    if fields.get("messages") is not None:
        raise fields.wrong("messages", "belongs to /v1/chat/completions: send input")


def _messages(fields: Fields) -> list[dict[str, Any]]:
    conversation = Conversation()
    if instructions := fields.text("instructions"):
        conversation.spoken("system", instructions)
    if isinstance(given := fields.needed("input"), str):
        conversation.spoken("user", given)
    elif isinstance(given, list) and given:
        read_items(fields.objects("input"), conversation)
        conversation.end()
    else:
        raise fields.wrong("input", "must be a text or a list of at least one item", "invalid_type")
    return conversation.messages


def _logprobs(fields: Fields) -> dict[str, Any]:
    top = fields.whole("top_logprobs", 0)
    if LOGPROBS not in fields.texts("include") and not top:
        return {}
    return {"logprobs": True, **({"top_logprobs": top} if top else {})}


def _format(fields: Fields) -> dict[str, Any]:
    """The format of the answer and how wordy it is."""
    if (text := fields.object("text")) is None:
        return {}
    found: dict[str, Any] = {}
    if (verbosity := text.text("verbosity")) is not None:
        found["verbosity"] = verbosity
    if (wanted := text.object("format")) is not None:
        kind = wanted.one_of("type", "text", "json_object", "json_schema")
        if kind == "json_object":
            found["response_format"] = {"type": kind}
        elif kind == "json_schema":
            wanted.needed_text("name")
            wanted.needed_object("schema")
            found["response_format"] = {"type": kind, "json_schema": wanted.others(frozenset({"type"}))}
    return found
