"""Answers as callers see them: without what only the gateway asked for, whole or in chunks."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from bpac.gateway.requests import ChatRequest
from bpac.scores import without_confidence

DONE = b"data: [DONE]\n\n"
# A few words at a time: chunks of one word cost more than they please.
_WORDS = re.compile(r"\s*(?:\S+\s+){0,7}\S*", re.DOTALL)


def shown(body: Mapping[str, Any], request: ChatRequest, confidence_asked: bool = False) -> dict[str, Any]:
    """A draft, whole or a piece, as its caller sees it.

    Parameters
    ----------
    body: the chat completion or chunk as the server sent it.
    request: what the caller asked for.
    confidence_asked: whether the gateway asked for a last line with a confidence.
    """
    choices = []
    for choice in body.get("choices") or ():
        seen = {**choice}
        if seen.get("logprobs") is not None:
            seen["logprobs"] = _shown_logprobs(seen["logprobs"], request)
        message = seen.get("message")
        if confidence_asked and isinstance(message, dict) and isinstance(message.get("content"), str):
            seen["message"] = {**message, "content": without_confidence(message["content"])}
        choices.append(seen)
    return {**body, "choices": choices}


def _shown_logprobs(logprobs: Any, request: ChatRequest) -> Any:
    if not request.logprobs:
        return None
    if not isinstance(logprobs, dict) or not isinstance(logprobs.get("content"), list):
        return logprobs
    most = request.top_logprobs
    content = [
        {**token, "top_logprobs": (token.get("top_logprobs") or [])[:most]} if isinstance(token, dict) else token
        for token in logprobs["content"]
    ]
    return {**logprobs, "content": content}


def event(body: Mapping[str, Any]) -> bytes:
    """A server-sent event."""
    return b"data: " + orjson.dumps(body) + b"\n\n"


def chunks(body: Mapping[str, Any], include_usage: bool) -> Iterator[bytes]:
    """A whole answer as the chunks of a stream, without the mark of its end.

    Parameters
    ----------
    body: the chat completion.
    include_usage: whether the counts of tokens follow in a last chunk.
    """
    head = {key: value for key, value in body.items() if key not in ("choices", "usage")}
    head["object"] = "chat.completion.chunk"
    for choice in body.get("choices") or ():
        index = choice.get("index", 0)
        message = dict(choice.get("message") or {})
        content, calls = message.pop("content", None), message.pop("tool_calls", None)

        def chunk(delta: Mapping[str, Any], index: int = index, **more: Any) -> bytes:
            parts = {"index": index, "delta": delta, "finish_reason": None, **more}
            return event({**head, "choices": [parts]})

        yield chunk({"role": "assistant", "content": "" if isinstance(content, str) else content, **message})
        logprobs = choice.get("logprobs")
        # All log-probabilities come with the first words: which belong to which cannot be told from here.
        for number, words in enumerate(_pieces(content)):
            yield chunk({"content": words}, **({"logprobs": logprobs} if logprobs and not number else {}))
        if isinstance(calls, list):
            numbered = [{"index": at, **call} for at, call in enumerate(calls) if isinstance(call, dict)]
            yield chunk({"tool_calls": numbered})
        yield chunk({}, finish_reason=choice.get("finish_reason") or "stop")
    if include_usage:
        yield event({**head, "choices": [], "usage": body.get("usage")})


def _pieces(content: Any) -> list[str]:
    return [words for words in _WORDS.findall(content) if words] if isinstance(content, str) else []
