"""Values of records: JSON inside of texts, messages, answers and names of models, in the shapes that logs have them."""

import json
from collections.abc import Mapping
from typing import Any

from bpac.answer import Answer, read_tokens, split_reasoning, token_count
from bpac.benchmarks.benchmark import Message
from bpac.errors import AnswerError
from bpac.importing.streamed import is_streamed, streamed_answer
from bpac.wire.json import from_json, to_json
from bpac.wire.messages.reply_reading import read_reply


def decoded(value: Any) -> Any:
    """A value that may be JSON in a text, as cells of CSV files are.

    >>> decoded('{"a": 1}'), decoded("42 apples"), decoded([1])
    ({'a': 1}, '42 apples', [1])
    """
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "[", '"'):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def text_of(value: Any) -> str:
    """A value as a text without surrounding spaces; empty if there is none.

    >>> text_of(None), text_of(" a "), text_of(7)
    ('', 'a', '7')
    """
    return "" if value is None or isinstance(value, dict | list) else str(value).strip()


def first_of(fields: Mapping[str, Any], *names: str) -> Any:
    """The first of these fields that is there and not empty; none if there is none."""
    return next((fields[name] for name in names if fields.get(name) not in (None, "", {}, [])), None)


def count_of(value: Any) -> int | None:
    """A number of tokens, which may be a text; none if it is none.

    >>> count_of("12"), count_of(12.0), count_of("")
    (12, 12, None)
    """
    try:
        return token_count(float(value)) if isinstance(value, str) else token_count(value)
    except ValueError:
        return None


def messages_of(value: Any) -> tuple[Message, ...]:
    """The chat messages in a prompt: a list of messages, an object with such a list, or a text.

    >>> messages_of("6 · 7?")
    ({'role': 'user', 'content': '6 · 7?'},)
    """
    value = decoded(value)
    if isinstance(value, Mapping):
        if "role" in value:
            return (value,)
        return messages_of(first_of(value, "messages", "input", "prompt"))
    if isinstance(value, list):
        if value and all(isinstance(one, str) for one in value):
            return ({"role": "user", "content": "\n".join(value)},)
        return tuple(one for one in value if isinstance(one, Mapping))
    return ({"role": "user", "content": value},) if isinstance(value, str) and value.strip() else ()


def answer_of(value: Any) -> Answer | None:
    """The answer in a chat completion, an object of the Responses API, a message, a stream or a text; none without one.

    >>> [answer_of(one).text for one in ("42", {"content": "42"}, {"choices": [{"message": {"content": "42"}}]})]
    ['42', '42', '42']
    """
    value = decoded(value)
    try:
        if is_streamed(value):
            answer: Answer | None = streamed_answer(value)
        else:
            answer = _read(decoded(value[-1]) if isinstance(value, list) and value else value)
    except AnswerError:
        return None
    return answer if answer is not None and (answer.text.strip() or answer.tool_calls) else None


def _read(value: Any) -> Answer | None:
    if isinstance(value, str):
        reasoning, text = split_reasoning(value)
        return Answer(text, reasoning)
    if not isinstance(value, Mapping):
        return None
    if isinstance(value.get("choices"), list):
        return Answer.from_openai(value)
    if isinstance(value.get("output"), list):
        return _of_responses(value)
    if {"content", "tool_calls"} & set(value):
        return _of_message(value)
    return _read(decoded(first_of(value, "output", "text", "completion", "message", "response")))


def _of_message(message: Mapping[str, Any]) -> Answer:
    content = message.get("content")
    if isinstance(content, list) and ("stop_reason" in message or _has_blocks(content)):
        return _of_messages(message)
    return Answer.from_openai({"choices": [{"message": message, "finish_reason": _reason(message)}]})


def _reason(message: Mapping[str, Any]) -> str:
    default = "tool_calls" if message.get("tool_calls") else "stop"
    return text_of(first_of(message, "finish_reason", "stop_reason")) or default


def _has_blocks(content: list[Any]) -> bool:
    """Whether a content has blocks that only the Messages API has."""
    return any(isinstance(block, Mapping) and block.get("type") in ("tool_use", "thinking") for block in content)


def _of_messages(body: Mapping[str, Any]) -> Answer:
    """The answer in a message of the Messages API; without a reason it is taken for whole, as others are."""
    called = any(isinstance(block, Mapping) and block.get("type") == "tool_use" for block in body["content"])
    reason = {"stop_reason": "tool_use" if called else "end_turn"}
    return Answer.from_openai(from_json(read_reply(to_json({**reason, **body}), 0)))


def _of_responses(body: Mapping[str, Any]) -> Answer:
    """The answer in an object of the Responses API."""
    texts: list[str] = []
    reasoning: list[str] = []
    calls: list[dict[str, Any]] = []
    listed: list[Any] = []
    refused = False
    for item in body["output"]:
        if not isinstance(item, Mapping):
            continue
        if item.get("type") == "function_call":
            function = {"name": item.get("name"), "arguments": item.get("arguments")}
            calls.append({"id": item.get("call_id"), "function": function})
        if item.get("type") == "custom_tool_call":
            calls.append({"id": item.get("call_id"), "custom": {"name": item.get("name"), "input": item.get("input")}})
        for part in item.get("content") or item.get("summary") or ():
            if not isinstance(part, Mapping):
                continue
            (reasoning if item.get("type") == "reasoning" else texts).append(str(part.get("text") or ""))
            listed += part.get("logprobs") or []
            refused = refused or part.get("type") == "refusal"
    usage = body.get("usage")
    counts = usage if isinstance(usage, Mapping) else {}
    whole = body.get("status") in (None, "completed")
    return Answer(
        text="".join(texts),
        reasoning="".join(reasoning),
        tokens=read_tokens({"content": listed}) if listed else None,
        completion_tokens=token_count(counts.get("output_tokens")) or 0,
        prompt_tokens=token_count(counts.get("input_tokens")),
        finish_reason="refusal" if refused else ("tool_calls" if calls else "stop") if whole else "length",
        tool_calls=tuple(calls),
    )


def model_names(name: str, *others: str, request: Any = None) -> tuple[str, ...]:
    """The names of a model, the most exact first: with its thinking effort, where the request sets one.

    Parameters
    ----------
    name: as it was asked for.
    others: further names of it, such as that of the version that answered.
    request: the request, which may set how much the model thinks.

    >>> model_names("gpt-5.1", "gpt-5.1-2025-11-13", request={"reasoning_effort": "none"})
    ('gpt-5.1 (effort none)', 'gpt-5.1', 'gpt-5.1-2025-11-13')
    """
    names = [one for one in dict.fromkeys((name, *others)) if one]
    effort = _effort(request) if isinstance(request, Mapping) else None
    return (f"{names[0]} (effort {effort})", *names) if names and effort else tuple(names)


def _effort(request: Mapping[str, Any]) -> str | None:
    reasoning, template = decoded(request.get("reasoning")), decoded(request.get("chat_template_kwargs"))
    if isinstance(template, Mapping):
        for switch in ("enable_thinking", "thinking"):
            if isinstance(template.get(switch), bool):
                return "on" if template[switch] else "off"
    if isinstance(reasoning, Mapping):
        return text_of(reasoning.get("effort")) or None
    return text_of(request.get("reasoning_effort")) or None
