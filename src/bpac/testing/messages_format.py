"""Scripted replies in the format of Anthropic's Messages API."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bpac.testing.replies import Reply, Request

_STOPS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use", "content_filter": "refusal"}
_ERRORS = {
    400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 404: "not_found_error",
    413: "request_too_large", 429: "rate_limit_error", 529: "overloaded_error",
}  # fmt: skip
# What blocks are before the first of their parts is there.
_EMPTY: dict[str, dict[str, Any]] = {
    "text": {"text": ""}, "tool_use": {"input": {}}, "thinking": {"thinking": "", "signature": ""},
}  # fmt: skip
SIGNATURE = "EqQBCgIYAhIkc2NyaXB0ZWQ="


def body(reply: "Reply", request: "Request") -> dict[str, Any]:
    """The JSON body of a complete reply, or of an error."""
    if reply.status >= 300:
        error = {"type": _ERRORS.get(reply.status, "api_error"), "message": reply.text}
        return {"type": "error", "error": error, "request_id": f"req_{request.number}"}
    stop = _STOPS.get(reply.finish_reason, reply.finish_reason)
    return {**_head(request), "content": _blocks(reply), "stop_reason": stop, "usage": _usage(reply, reply.generated)}


def events(reply: "Reply", request: "Request") -> Iterator[dict[str, Any]]:
    """The events of a streamed reply."""
    yield {"type": "message_start", "message": {**_head(request), "content": [], "usage": _usage(reply, 1)}}
    yield {"type": "ping"}
    for index, block in enumerate(_blocks(reply)):
        yield {"type": "content_block_start", "index": index, "content_block": block | _EMPTY[block["type"]]}
        for delta in _deltas(reply, block):
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    stop = _STOPS.get(reply.finish_reason, reply.finish_reason)
    usage = _usage(reply, reply.generated)
    yield {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": usage}
    yield {"type": "message_stop"}


def _head(request: "Request") -> dict[str, Any]:
    known = {"id": f"msg_{request.number}", "type": "message", "role": "assistant", "model": request.body.get("model")}
    return {**known, "stop_reason": None, "stop_sequence": None}


def _blocks(reply: "Reply") -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    if reply.reasoning:
        blocks.append({"type": "thinking", "thinking": reply.reasoning, "signature": SIGNATURE})
    if reply.answer_tokens():
        blocks.append({"type": "text", "text": "".join(token.text for token in reply.answer_tokens())})
    for call in reply.tool_calls:
        function = call["function"]
        used = {"id": call["id"], "name": function["name"], "input": json.loads(function["arguments"])}
        blocks.append({"type": "tool_use", **used})
    return blocks


def _deltas(reply: "Reply", block: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if block["type"] == "text":
        for token in reply.answer_tokens():
            yield {"type": "text_delta", "text": token.text}
    elif block["type"] == "thinking":
        yield {"type": "thinking_delta", "thinking": block["thinking"]}
        yield {"type": "signature_delta", "signature": block["signature"]}
    else:
        text = json.dumps(block["input"])
        for part in ("", text[: len(text) // 2], text[len(text) // 2 :]):
            yield {"type": "input_json_delta", "partial_json": part}


def _usage(reply: "Reply", generated: int) -> dict[str, Any]:
    read = {"input_tokens": 7 - reply.cached_tokens, "cache_read_input_tokens": reply.cached_tokens}
    thought = {"output_tokens_details": {"thinking_tokens": len(reply.reasoning.split())}} if reply.reasoning else {}
    return {**read, "cache_creation_input_tokens": 0, "output_tokens": generated, **thought}
