"""Chat requests with all that the other APIs can express, and what the vendors' own packages say is valid."""

from typing import Any

from anthropic.types import Message, RawMessageStreamEvent
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming, MessageCreateParamsStreaming
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response, ResponseStreamEvent
from openai.types.responses.response_create_params import (
    ResponseCreateParamsNonStreaming,
    ResponseCreateParamsStreaming,
)
from pydantic import TypeAdapter

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER = {"type": "function", "function": {"name": "weather", "description": "the weather", "parameters": SCHEMA}}
NOW = {"type": "function", "function": {"name": "now", "strict": True, "parameters": {"type": "object"}}}
PNG = "iVBORw0KGgo="
CALLS = [
    {"id": "call_a", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}},
    {"id": "call_b", "type": "function", "function": {"name": "now", "arguments": ""}},
]
ASK: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "6 · 7?"}]}
# A conversation with tools that were called in parallel, images, a file and two kinds of instructions.
HISTORY: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "developer", "content": [{"type": "text", "text": "Answer in German."}]},
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "What is this?"},
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}", "detail": "low"}},
            {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
            {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0="}},
        ],
    },
    {"role": "assistant", "content": "I look it up.", "reasoning_content": "hm", "tool_calls": CALLS},
    {"role": "tool", "tool_call_id": "call_a", "name": "weather", "content": "rain"},
    {"role": "tool", "tool_call_id": "call_b", "content": [{"type": "text", "text": "noon"}]},
    {"role": "user", "content": "And now?"},
    {"role": "assistant", "content": None, "refusal": "I cannot say."},
    {"role": "user", "content": "Why?"},
]

RESPONSE_REQUEST = {
    False: TypeAdapter[Any](ResponseCreateParamsNonStreaming),
    True: TypeAdapter[Any](ResponseCreateParamsStreaming),
}
MESSAGE_REQUEST = {
    False: TypeAdapter[Any](MessageCreateParamsNonStreaming),
    True: TypeAdapter[Any](MessageCreateParamsStreaming),
}
RESPONSE, RESPONSE_EVENT = TypeAdapter[Any](Response), TypeAdapter[Any](ResponseStreamEvent)
MESSAGE, MESSAGE_EVENT = TypeAdapter[Any](Message), TypeAdapter[Any](RawMessageStreamEvent)
COMPLETION, CHUNK = TypeAdapter[Any](ChatCompletion), TypeAdapter[Any](ChatCompletionChunk)


def known(adapter: TypeAdapter[Any], value: Any) -> Any:
    """What a vendor's package makes of a value: fields that it does not know are missing; invalid values raise."""
    return _listed(adapter.validate_python(value))


def _listed(value: Any) -> Any:
    """The value with all lists in it, which are validated only when they are read."""
    if isinstance(value, dict):
        return {name: _listed(part) for name, part in value.items()}
    if isinstance(value, str | int | float | None):
        return value
    return [_listed(part) for part in value]
