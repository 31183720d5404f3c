"""Messages of a server of this API, passed on to callers who have asked in it."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from bpac.errors import AnswerError
from bpac.wire.json import to_json
from bpac.wire.translating import WRONG_KIND

Event = dict[str, Any]

# The fields of blocks that come in parts, each with the type of the parts and their field.
_PARTS: Mapping[Any, tuple[tuple[str, str, str], ...]] = {
    "text": (("text", "text_delta", "text"),),
    "thinking": (("thinking", "thinking_delta", "thinking"), ("signature", "signature_delta", "signature")),
}
_CALLS = ("tool_use", "server_tool_use", "mcp_tool_use")
_TYPE = re.compile(r"[a-z_]+")


def message(original: Any, described: Mapping[str, Any]) -> dict[str, Any]:
    """A whole message; ``AnswerError`` if it is none.

    Parameters
    ----------
    original: what a chat completion has under ``ORIGINAL``.
    described: a message with the fields that every message has, where a server leaves them out.
    """
    try:
        return {**described, **original["reply"]}
    except WRONG_KIND as error:
        raise AnswerError("not the original of a message") from error


def events(original: Any, described: Mapping[str, Any]) -> list[Event]:
    """The events of a chunk, or those of a whole message, without the last one; ``AnswerError`` if there are none.

    Parameters
    ----------
    original, described: as for ``message``.
    """
    try:
        found = original["events"] if "events" in original else [*_exploded(message(original, described))]
        return [event for event in found if _TYPE.fullmatch(event["type"]) and event["type"] != "message_stop"]
    except WRONG_KIND as error:
        raise AnswerError("not the original of a message") from error


def _exploded(reply: Mapping[str, Any]) -> Iterator[Event]:
    """A whole message as events."""
    ended = {name: reply.get(name) for name in ("stop_reason", "stop_sequence")}
    more = {name: reply[name] for name in ("container", "stop_details") if reply.get(name) is not None}
    begun = {name: value for name, value in reply.items() if name not in more}
    yield {"type": "message_start", "message": {**begun, "content": [], "stop_reason": None, "stop_sequence": None}}
    for index, block in enumerate(reply["content"]):
        yield from _block(index, block)
    managed = {name: reply[name] for name in ("context_management",) if reply.get(name) is not None}
    yield {"type": "message_delta", "delta": {**ended, **more}, "usage": reply.get("usage"), **managed}


def _block(index: int, block: Mapping[str, Any]) -> Iterator[Event]:
    begun, deltas = dict(block), []
    for field, kind, name in _PARTS.get(block["type"], ()):
        if isinstance(value := block.get(field), str):
            begun[field] = ""
            deltas.append({"type": kind, name: value})
    if block["type"] == "text" and isinstance(cited := block.get("citations"), list):
        begun["citations"] = []
        deltas += [{"type": "citations_delta", "citation": one} for one in cited]
    if block["type"] in _CALLS:
        begun["input"] = {}
        deltas.append({"type": "input_json_delta", "partial_json": to_json(block["input"]).decode()})
    yield {"type": "content_block_start", "index": index, "content_block": begun}
    for delta in deltas:
        yield {"type": "content_block_delta", "index": index, "delta": delta}
    yield {"type": "content_block_stop", "index": index}
