"""Events of a stream, put together by the official clients' own code."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from anthropic.lib.streaming._messages import accumulate_event
from openai import omit
from openai._models import construct_type
from openai.lib.streaming.responses._responses import ResponseStreamState
from openai.types.responses import ResponseStreamEvent

from bpac.wire.messages.event_writing import MessageWriter
from bpac.wire.responses.event_writing import ResponseWriter

Chunk = Mapping[str, Any]


def responses_events(chunks: Sequence[Chunk], request: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
    """The events of a response, decoded."""
    writer = ResponseWriter(request or {"model": "homework"}, "t", 1)
    return decoded(b"".join([*(writer.add(chunk) for chunk in chunks), writer.end()]))


def messages_events(chunks: Sequence[Chunk], request: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
    """The events of a message, decoded."""
    writer = MessageWriter(request or {"model": "homework"}, "t", "req")
    return decoded(b"".join([*(writer.add(chunk) for chunk in chunks), writer.end()]))


def decoded(data: bytes) -> list[dict[str, Any]]:
    """The data of events, each of which must have its own type as its name."""
    found = []
    for one in data.decode().split("\n\n")[:-1]:
        name, body = one.split("\n")
        event = json.loads(body.removeprefix("data: "))
        assert name == f"event: {event['type']}"
        found.append(event)
    return found


def openai_response(events: Sequence[Mapping[str, Any]]) -> tuple[Any, Any]:
    """The response at the end of the events, and what OpenAI's client has put together from the others."""
    state: Any = ResponseStreamState(input_tools=omit, text_format=omit)
    snapshot, last = None, None
    for event in events:
        last = construct_type(type_=ResponseStreamEvent, value=dict(event))
        state.handle_event(last)
        snapshot = state._ResponseStreamState__current_snapshot
    assert last is not None
    return last.response, snapshot  # type: ignore[attr-defined]


def anthropic_message(events: Sequence[Mapping[str, Any]]) -> Any:
    """The message that Anthropic's client has put together."""
    snapshot: Any = None
    buffers: dict[int, bytes] = {}
    for event in events:
        snapshot = accumulate_event(event=dict(event), current_snapshot=snapshot, json_bufs=buffers)  # type: ignore[arg-type]
    return snapshot
