"""Messages in the conventions of OpenTelemetry for generative AI, of three generations.

In the attributes ``gen_ai.input.messages`` and ``gen_ai.output.messages``; in events, ``gen_ai.user.message`` …
``gen_ai.choice`` or ``gen_ai.content.prompt`` and ``gen_ai.content.completion``; and in numbered attributes,
``gen_ai.prompt.0.content`` and ``gen_ai.completion.0.content``.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from bpac.benchmarks.benchmark import Message
from bpac.importing.fields import decoded, first_of, messages_of, text_of

# The name of an event, and its fields.
Event = tuple[str, Mapping[str, Any]]
SAID = ("gen_ai.system.message", "gen_ai.user.message", "gen_ai.assistant.message", "gen_ai.tool.message")
CHOICE = "gen_ai.choice"
_TEXTS = ("text", "", None)
_READ_PARTS = (*_TEXTS, "reasoning", "tool_call", "tool_call_response")


def prompt_of(attributes: Mapping[str, Any], events: Sequence[Event]) -> tuple[Message, ...]:
    """The messages that were sent to the model; none if they were not recorded."""
    system = decoded(attributes.get("gen_ai.system_instructions"))
    before = [{"role": "system", "content": _text_of_parts(system)}] if system else []
    messages = decoded(attributes.get("gen_ai.input.messages"))
    if isinstance(messages, list):
        return (*before, *(_message(one) for one in messages if isinstance(one, Mapping)))
    if numbered := _numbered(attributes, "gen_ai.prompt."):
        return tuple(numbered)
    said: list[Mapping[str, Any]] = []
    for name, fields in events:
        if name in SAID:
            content = fields.get("content", fields.get("gen_ai.event.content"))
            calls = {"tool_calls": fields["tool_calls"]} if fields.get("tool_calls") else {}
            said.append({"role": name.split(".")[1], "content": content, **calls})
        elif name == "gen_ai.content.prompt":
            said += messages_of(fields.get("gen_ai.prompt"))
    # Where content is not captured, events have none: all prompts would look the same.
    return () if any(one["role"] == "user" and not one["content"] for one in said) else tuple(said)


def output_of(attributes: Mapping[str, Any], events: Sequence[Event]) -> Any:
    """The message of the model; none if it was not recorded."""
    messages = decoded(attributes.get("gen_ai.output.messages"))
    if isinstance(messages, list) and messages and isinstance(messages[0], Mapping):
        return _message(messages[0])
    if numbered := _numbered(attributes, "gen_ai.completion."):
        return numbered[0]
    for name, fields in events:
        if name == CHOICE:
            message = decoded(fields.get("message"))
            said = dict(message) if isinstance(message, Mapping) else {"content": fields.get("content")}
            called = all(_has_arguments(call) for call in said.get("tool_calls") or ())
            return {**said, "finish_reason": text_of(fields.get("finish_reason"))} if called else None
        if name == "gen_ai.content.completion":
            return fields.get("gen_ai.completion")
    return None


def _has_arguments(call: Any) -> bool:
    """Whether a tool call was recorded whole: where content is not captured, two of them would look the same."""
    function = call.get("function") if isinstance(call, Mapping) else None
    return isinstance(function, Mapping) and "arguments" in function


def _message(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """A message with ``parts`` as one with ``content`` and ``tool_calls``."""
    parts = message.get("parts")
    if not isinstance(parts, list):
        return message
    found: dict[str, Any] = {"role": message.get("role"), "content": _text_of_parts(parts)}
    calls = [
        {"id": part.get("id"), "function": {"name": part.get("name"), "arguments": _arguments(part.get("arguments"))}}
        for part in parts
        if isinstance(part, Mapping) and part.get("type") == "tool_call"
    ]
    others = [part for part in parts if isinstance(part, Mapping) and part.get("type") not in _READ_PARTS]
    if others:  # images, for example: prompts that differ in them are different prompts
        found["content"] = [{"type": "text", "text": found["content"]}, *others]
    reason = {"finish_reason": reason_of(message["finish_reason"])} if "finish_reason" in message else {}
    return found | ({"tool_calls": calls} if calls else {}) | reason


def reason_of(value: Any) -> str:
    """A finish reason by the name that chat completions have for it."""
    reason = text_of(value)
    return "tool_calls" if reason == "tool_call" else reason


def _arguments(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value if value is not None else {})


def _text_of_parts(parts: Any) -> str:
    if isinstance(parts, str):
        return parts
    return "".join(_text_of_part(part) for part in parts or () if isinstance(part, Mapping))


def _text_of_part(part: Mapping[str, Any]) -> str:
    if part.get("type") == "tool_call_response":
        result = first_of(part, "response", "result")
        return result if isinstance(result, str) else json.dumps(result)
    return text_of(part.get("content")) if part.get("type") in _TEXTS else ""


def _numbered(attributes: Mapping[str, Any], prefix: str) -> list[dict[str, Any]]:
    """The messages in attributes such as ``gen_ai.prompt.0.content``, in order."""
    found: dict[int, dict[str, Any]] = {}
    for name, value in attributes.items():
        number, dot, key = name.removeprefix(prefix).partition(".")
        if name.startswith(prefix) and dot and number.isdigit() and key in ("role", "content", "finish_reason"):
            found.setdefault(int(number), {})[key] = value
    return [found[number] for number in sorted(found)]
