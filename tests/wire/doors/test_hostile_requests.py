"""Requests in other formats with a wrong value anywhere: refused with its place, and never a failure of the gateway."""

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from bpac.errors import RequestError
from bpac.gateway.chat.request import ChatRequest
from bpac.gateway.http.bad_request import BadRequest
from bpac.wire.json import to_json
from bpac.wire.messages import request_reading as messages
from bpac.wire.messages.event_writing import MessageWriter
from bpac.wire.responses import request_reading as responses
from bpac.wire.responses.event_writing import ResponseWriter
from bpac.wire.token_estimate import estimated_tokens

DEEP: Any = "x"
for _ in range(60):
    DEEP = [DEEP]
WRONG: list[Any] = [None, 7, -1, 0.5, True, "x", "", [], [None], [[]], {}, {"type": "x"}, {"type": []}, [{}], DEEP]

RESPONSES: dict[str, Any] = {
    "model": "homework", "instructions": "Be brief.", "max_output_tokens": 9, "stream": True, "store": True,
    "include": ["message.output_text.logprobs"], "top_logprobs": 2, "reasoning": {"effort": "low", "summary": "auto"},
    "text": {"format": {"type": "json_schema", "name": "a", "schema": {}, "strict": True}, "verbosity": "low"},
    "tools": [
        {"type": "function", "name": "add", "description": "d", "parameters": {}, "strict": True},
        {"type": "custom", "name": "c", "format": {"type": "grammar", "syntax": "lark", "definition": "a"}},
    ],
    "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "add"}]},
    "truncation": "disabled", "background": False, "metadata": {"a": "b"}, "parallel_tool_calls": True, "n": 1,
    "input": [
        {"role": "user", "content": [
            {"type": "input_text", "text": "a"}, {"type": "input_image", "image_url": "u", "detail": "low"},
            {"type": "input_file", "file_data": "d", "filename": "f"},
            {"type": "input_audio", "input_audio": {"data": "d", "format": "wav"}},
        ]},
        {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "s"}], "encrypted_content": "e"},
        {"type": "message", "role": "assistant", "content": [
            {"type": "output_text", "text": "a"}, {"type": "refusal", "refusal": "no"}]},
        {"type": "function_call", "call_id": "c", "name": "add", "arguments": "{}"},
        {"type": "custom_tool_call", "call_id": "d", "name": "c", "input": "x"},
        {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_image", "image_url": "u"}]},
        {"type": "custom_tool_call_output", "call_id": "d", "output": "3"},
    ],
}  # fmt: skip
MESSAGES: dict[str, Any] = {
    "model": "homework", "max_tokens": 9, "system": [{"type": "text", "text": "Be brief."}], "stream": True,
    "stop_sequences": ["a"], "metadata": {"user_id": "anna", "team": "a"}, "service_tier": "standard_only",
    "thinking": {"type": "enabled", "budget_tokens": 2000, "display": "summarized"},
    "output_config": {"effort": "low", "format": {"type": "json_schema", "schema": {}}},
    "tools": [{"type": "custom", "name": "add", "description": "d", "input_schema": {}, "strict": True}],
    "tool_choice": {"type": "tool", "name": "add", "disable_parallel_tool_use": True},
    "context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]},
    "messages": [
        {"role": "user", "content": [
            {"type": "text", "text": "a"}, {"type": "image", "source": {"type": "url", "url": "u"}},
            {"type": "document", "title": "t", "context": "c", "citations": {"enabled": False},
             "source": {"type": "base64", "media_type": "application/pdf", "data": "d"}},
            {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "a"}]}},
        ]},
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "t", "signature": "s"}, {"type": "redacted_thinking", "data": "d"},
            {"type": "text", "text": "a"}, {"type": "tool_use", "id": "c", "name": "add", "input": {}},
        ]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "c", "content": [{"type": "text", "text": "3"}], "is_error": True}]},
    ],
}  # fmt: skip


def changed(value: Any) -> Iterator[list[Any]]:
    """The path to every place in a value."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in parts:
        yield [key]
        yield from ([key, *below] for below in changed(inner))


def with_change(body: dict[str, Any], place: list[Any], wrong: Any) -> dict[str, Any]:
    """The body with another value at one place."""
    found = copy.deepcopy(body)
    inner: Any = found
    for step in place[:-1]:
        inner = inner[step]
    inner[place[-1]] = wrong
    return found


@pytest.mark.parametrize(
    ("body", "read", "write"),
    [
        (RESPONSES, responses.read_request, lambda body: ResponseWriter(body, "t", 1)),
        (MESSAGES, messages.read_request, lambda body: MessageWriter(body, "t", "req")),
    ],
)
def test_a_wrong_value_anywhere_is_refused_or_passed_on(body: dict[str, Any], read: Any, write: Any) -> None:
    """Whatever is read can be written as JSON, counted and answered; whatever is refused names a place within it."""
    assert ChatRequest.read(read(body)).stream
    refused: list[str] = []
    for place in changed(body):
        for wrong in WRONG:
            given = with_change(body, place, wrong)
            try:
                chat = read(given)
                ChatRequest.read(chat)
            except (RequestError, BadRequest) as error:
                refused.append(error.param or "")
                continue
            to_json(chat)
            estimated_tokens(chat)
            to_json(write(given).whole({"choices": [{"message": {"content": "a"}}]}))
    assert len(refused) > 500
    assert {named.split(".")[0].split("[")[0] for named in refused} <= body.keys()


@pytest.mark.parametrize("field", ["input", "model"])
def test_fields_that_must_be_there(field: str) -> None:
    """Their error names them."""
    with pytest.raises(RequestError) as caught:
        responses.read_request({name: value for name, value in RESPONSES.items() if name != field})
    assert caught.value.param == field


@pytest.mark.parametrize("field", ["max_tokens", "messages", "model"])
def test_fields_of_messages_that_must_be_there(field: str) -> None:
    """Their error names them."""
    with pytest.raises(RequestError) as caught:
        messages.read_request({name: value for name, value in MESSAGES.items() if name != field})
    assert caught.value.param == field
