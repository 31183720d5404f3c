"""Requests of OpenAI's Responses API, as requests for a chat completion.

Fields that chat completions have under the same name, and fields that are not known, are passed on as they are. What
chat completions do not have is kept for models with this API (``wire/originals.py``).
docs/doors.md lists what is translated, left out and refused.
"""

from collections.abc import Mapping
from typing import Any

from bpac.wire.chat_messages import Conversation, text_part
from bpac.wire.originals import ORIGINAL, Original
from bpac.wire.request_fields import Fields, refuse_several_answers
from bpac.wire.responses.item_reading import read_items
from bpac.wire.responses.tool_reading import read_tool, read_tool_choice

# What ``include`` calls the log-probabilities of the answer.
LOGPROBS = "message.output_text.logprobs"

# Fields that only this API has. For other models they are left out: they limit tools that run at OpenAI or pad events,
# or are refused by ``_check``.
_KEPT = ("context_management", "instructions", "max_tool_calls", "moderation", "stream_options", "truncation")
# All fields that are not passed on under their own names; ``store`` because nothing is stored.
_READ = frozenset({
    *_KEPT, "model", "input", "max_output_tokens", "text", "reasoning", "tools", "tool_choice", "include", "stream",
    "store", "background", "previous_response_id", "conversation", "prompt", "top_logprobs", ORIGINAL,
})  # fmt: skip
_NOT_KEPT = (
    "cannot be used: this gateway keeps no conversations. Send the earlier items of the conversation in input, "
    "as with store = false"
)


def read_request(body: Mapping[str, Any]) -> dict[str, Any]:
    """The same request for a chat completion; ``RequestError`` if it cannot be read or expressed.

    >>> read_request({"model": "homework", "input": "6 * 7?", "max_output_tokens": 50})
    ... # doctest: +NORMALIZE_WHITESPACE
    {'model': 'homework', 'messages': [{'role': 'user', 'content': '6 * 7?'}], 'max_tokens': 50,
     'bpac_original': {'api': 'responses', 'fields': {}}}
    """
    fields, original = Fields(body), Original("responses")
    _check(fields, original)
    original.keep(**{name: fields.get(name) for name in _KEPT})
    chat: dict[str, Any] = {"model": fields.needed_text("model"), "messages": _messages(fields, original)}
    chat |= fields.others(_READ)
    if (most := fields.whole("max_output_tokens", 1)) is not None:
        chat["max_tokens"] = most  # the name that most servers understand; token_limit of a model changes it
    chat |= _logprobs(fields)
    original.keep(include=[name for name in fields.texts("include") if name != LOGPROBS])
    chat |= _format(fields, original)
    if (reasoning := fields.object("reasoning")) is not None:
        original.keep(reasoning=reasoning.others(frozenset({"effort"})))
        if (effort := reasoning.text("effort")) is not None:
            chat["reasoning_effort"] = effort
    if tools := [read_tool(tool, original) for tool in fields.objects("tools")]:
        chat["tools"] = tools
    if (choice := read_tool_choice(fields, original)) is not None and (tools or choice not in ("auto", "none")):
        chat["tool_choice"] = choice  # without tools, servers refuse any, and these two ask for nothing
    if fields.flag("stream"):
        chat |= {"stream": True, "stream_options": {"include_usage": True}}
    return {**chat, ORIGINAL: original.values}


def _check(fields: Fields, original: Original) -> None:
    """Refuse what no model may be asked, and note what only a model with this API can be asked."""
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
            error = fields.unsupported(name, "cannot be used: only OpenAI's own servers do this; leave it out")
            original.only_here(error)
    if (truncation := fields.text("truncation")) not in (None, "disabled"):
        what = f"cannot be {truncation!r}: this gateway shortens no conversations; leave it out"
        original.only_here(fields.unsupported("truncation", what))
    if fields.get("messages") is not None:
        raise fields.wrong("messages", "belongs to /v1/chat/completions: send input")


def _messages(fields: Fields, original: Original) -> list[dict[str, Any]]:
    conversation = Conversation(original)
    if instructions := fields.text("instructions"):
        conversation.spoken("system", [{**text_part(instructions), ORIGINAL: []}])
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


def _format(fields: Fields, original: Original) -> dict[str, Any]:
    """The format of the answer and how wordy it is."""
    if (text := fields.object("text")) is None:
        return {}
    found: dict[str, Any] = {}
    original.keep(text=text.others(frozenset({"format", "verbosity"})))
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
