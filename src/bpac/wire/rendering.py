"""Answers as callers see them: without what only the gateway asked for, whole or in chunks."""

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from itertools import accumulate
from typing import Any, Protocol

from bpac.scores import without_confidence
from bpac.wire.completions import to_json

DONE = b"data: [DONE]\n\n"
# A few words at a time: chunks of one word cost more than they please.
_WORDS = re.compile(r"\s*(?:\S+\s+){0,7}\S*", re.DOTALL)
# Of a choice, what has its place in chunks. The rest is the server's own, such as vLLM's ``stop_reason``.
_PLACED = ("index", "message", "delta", "logprobs", "finish_reason")


class LogprobsRequest(Protocol):
    """Which log-probabilities a caller asked for."""

    @property
    def logprobs(self) -> bool:
        """Whether the caller wants log-probabilities."""

    @property
    def top_logprobs(self) -> int:
        """How many alternatives per token the caller wants."""


def shown(body: Mapping[str, Any], request: LogprobsRequest, confidence_asked: bool = False) -> dict[str, Any]:
    """A draft, whole or a piece, as its caller sees it.

    With a line that states a confidence go its tokens; log-probabilities in which they cannot be told from those of the
    text become null.

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
            said, kept = message["content"], without_confidence(message["content"])
            seen["message"] = {**message, "content": kept}
            if seen.get("logprobs") is not None and kept != said:
                seen["logprobs"] = _cut_logprobs(seen["logprobs"], said, kept)
        choices.append(seen)
    return {**body, "choices": choices}


def _shown_logprobs(logprobs: Any, request: LogprobsRequest) -> Any:
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


def _cut_logprobs(logprobs: Any, said: str, kept: str) -> dict[str, Any] | None:
    """Those of the tokens that begin within what is kept of a text, or none if it is not certain which do."""
    try:
        tokens = logprobs["content"]
        parts = [_bytes(token) for token in tokens]
    except (KeyError, TypeError, AttributeError, ValueError):
        return None
    text = b"".join(parts)
    # Thoughts may come before what was said, and marks of the end after it. Half a letter is in no token's bytes.
    start = text.rfind(said.encode("utf-8", "surrogatepass"))
    end = start + len(kept.encode("utf-8", "surrogatepass"))
    begins = list(accumulate(map(len, parts), initial=0))
    count = bisect_left(begins, end, hi=len(parts))
    # The last token may reach beyond the end, as "2\n" does, but not into the words that are cut off.
    if start < 0 or text[end : begins[count]].strip():
        return None
    return {**logprobs, "content": tokens[:count]}


def _bytes(token: Any) -> bytes:
    given = token.get("bytes")
    return bytes(given) if isinstance(given, list) else token["token"].encode()


def event(body: Mapping[str, Any]) -> bytes:
    """A server-sent event."""
    return b"data: " + to_json(body) + b"\n\n"


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
        opening = {"role": "assistant", "content": "" if isinstance(content, str) else content, **message}
        parts: list[dict[str, Any]] = [{"delta": {"content": words}} for words in _pieces(content)]
        if numbered := _numbered(calls):
            parts.append({"delta": {"tool_calls": numbered}})
        rest = {key: value for key, value in choice.items() if key not in _PLACED}
        parts.append({"delta": {}, **rest, "finish_reason": choice.get("finish_reason") or "stop"})
        if choice.get("logprobs"):
            # All come with the first words, or calls: which belong to which cannot be told from here.
            parts[0]["logprobs"] = choice["logprobs"]
        for part in ({"delta": opening}, *parts):
            yield event({**head, "choices": [{"index": index, "finish_reason": None, **part}]})
    if include_usage:
        yield event({**head, "choices": [], "usage": body.get("usage")})


def _numbered(calls: Any) -> list[dict[str, Any]]:
    listed = calls if isinstance(calls, list) else []
    return [{"index": at, **call} for at, call in enumerate(listed) if isinstance(call, dict)]


def _pieces(content: Any) -> list[str]:
    return [words for words in _WORDS.findall(content) if words] if isinstance(content, str) else []
