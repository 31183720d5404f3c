"""Scripted replies in the format of OpenAI's Responses API."""

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bpac.answer import Token
    from bpac.testing.replies import Reply, Request

# What items are before the first of their parts is there.
_EMPTY: dict[str, dict[str, Any]] = {
    "message": {"content": []}, "function_call": {"arguments": ""}, "reasoning": {"summary": []},
}  # fmt: skip
LOGPROBS = "message.output_text.logprobs"


def body(reply: "Reply", request: "Request") -> dict[str, Any]:
    """The JSON body of a complete reply, or of an error."""
    if reply.status >= 300:
        return {"error": {"message": reply.text, "type": "scripted", "param": None, "code": str(reply.status)}}
    return _response(reply, request, _items(reply, request), ended=True)


def events(reply: "Reply", request: "Request") -> Iterator[dict[str, Any]]:
    """The events of a streamed reply."""
    for number, event in enumerate(_events(reply, request)):
        yield {**event, "sequence_number": number}


def _events(reply: "Reply", request: "Request") -> Iterator[dict[str, Any]]:
    items = _items(reply, request)
    for state in ("created", "in_progress"):
        yield {"type": f"response.{state}", "response": _response(reply, request, [], ended=False)}
    for index, item in enumerate(items):
        where = {"output_index": index, "item_id": item["id"]}
        begun = {**item, **_EMPTY[item["type"]], "status": "in_progress"}
        yield {"type": "response.output_item.added", "output_index": index, "item": begun}
        if item["type"] == "message":
            yield from _text(reply, request, item, where)
        elif item["type"] == "reasoning":
            part = {"type": "summary_text", "text": reply.reasoning}
            at = {**where, "summary_index": 0}
            yield {"type": "response.reasoning_summary_part.added", **at, "part": {**part, "text": ""}}
            yield {"type": "response.reasoning_summary_text.delta", **at, "delta": reply.reasoning}
            yield {"type": "response.reasoning_summary_text.done", **at, "text": reply.reasoning}
            yield {"type": "response.reasoning_summary_part.done", **at, "part": part}
        else:
            text = item["arguments"]
            for part in (text[: len(text) // 2], text[len(text) // 2 :]):
                yield {"type": "response.function_call_arguments.delta", **where, "delta": part}
            yield {"type": "response.function_call_arguments.done", **where, "arguments": text}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    whole = _response(reply, request, items, ended=True)
    yield {"type": f"response.{whole['status']}", "response": whole}


def _text(reply: "Reply", request: "Request", item: dict[str, Any], where: dict[str, Any]) -> Iterator[dict[str, Any]]:
    part = item["content"][0]
    at = {**where, "content_index": 0}
    empty = {**part, "text": "", "logprobs": []}
    yield {"type": "response.content_part.added", **at, "part": empty}
    for token in reply.answer_tokens():
        listed = _logprobs(reply, request, (token,))
        yield {"type": "response.output_text.delta", **at, "delta": token.text, "logprobs": listed}
    yield {"type": "response.output_text.done", **at, "text": part["text"], "logprobs": part["logprobs"]}
    yield {"type": "response.content_part.done", **at, "part": part}


def _items(reply: "Reply", request: "Request") -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    if reply.reasoning:
        thought: dict[str, Any] = {"type": "reasoning", "summary": [{"type": "summary_text", "text": reply.reasoning}]}
        if "reasoning.encrypted_content" in (request.body.get("include") or ()):
            thought["encrypted_content"] = "gAAAAscripted"
        items.append({"id": f"rs_{request.number}", **thought})
    if reply.answer_tokens():
        text = "".join(token.text for token in reply.answer_tokens())
        logprobs = _logprobs(reply, request, reply.answer_tokens())
        part = {"type": "output_text", "text": text, "annotations": [], "logprobs": logprobs}
        said = {"type": "message", "role": "assistant", "status": "completed", "content": [part]}
        items.append({"id": f"msg_{request.number}", **said})
    for number, call in enumerate(reply.tool_calls):
        made = {"type": "function_call", "status": "completed", "call_id": call["id"], **call["function"]}
        items.append({"id": f"fc_{request.number}_{number}", **made})
    return items


def _response(reply: "Reply", request: "Request", items: list[dict[str, Any]], *, ended: bool) -> dict[str, Any]:
    cut = {"length": "max_output_tokens", "content_filter": "content_filter"}.get(reply.finish_reason)
    asked = request.body
    return {
        "id": f"resp_{request.number}",
        "object": "response",
        "created_at": 0,
        "model": asked.get("model"),
        "status": "in_progress" if not ended else "incomplete" if cut else "completed",
        "error": None,
        "incomplete_details": {"reason": cut} if cut and ended else None,
        "output": items,
        "parallel_tool_calls": asked.get("parallel_tool_calls", True),
        "tool_choice": asked.get("tool_choice", "auto"),
        "tools": asked.get("tools", []),
        "usage": _usage(reply) if ended else None,
    }


def _usage(reply: "Reply") -> dict[str, Any]:
    return {
        "input_tokens": 7,
        "input_tokens_details": {"cached_tokens": reply.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": reply.generated,
        "output_tokens_details": {"reasoning_tokens": len(reply.reasoning.split())},
        "total_tokens": 7 + reply.generated,
    }


def _logprobs(reply: "Reply", request: "Request", tokens: "tuple[Token, ...]") -> list[dict[str, Any]]:
    if not (reply.logprobs and LOGPROBS in (request.body.get("include") or ())):
        return []
    count = int(request.body.get("top_logprobs") or 0)
    listed = []
    for token in tokens:
        top = [_entry(*other) for other in zip(token.top_texts, token.top, strict=True)][:count]
        listed.append({**_entry(token.text, token.logprob), "top_logprobs": top})
    return listed


def _entry(text: str, logprob: float) -> dict[str, Any]:
    # The API writes the least number that it knows for probability 0.
    return {"token": text, "logprob": logprob if math.isfinite(logprob) else -9999.0, "bytes": list(text.encode())}
