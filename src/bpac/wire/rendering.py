"""Answers as callers receive them: without what only the gateway asked for, whole or as a stream."""

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, Protocol, TypedDict

import msgspec

from bpac.scores import without_confidence
from bpac.wire.json import UNDECODABLE, from_json, to_json
from bpac.wire.originals import ORIGINAL, with_text_cut
from bpac.wire.stream import StreamEvent

DONE = b"data: [DONE]\n\n"
# Up to eight words per chunk: a chunk for each word would cost more than it is worth.
_WORDS = re.compile(r"\s*(?:\S+\s+){0,7}\S*", re.DOTALL)
# The fields of a choice that have a place in chunks. All others are the server's own, such as vLLM's ``stop_reason``.
_PLACED = ("index", "message", "delta", "logprobs", "finish_reason")

_LOGPROBS = b'"logprobs"'
_NULL = msgspec.Raw(b"null")
_decode_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_choices = msgspec.json.Decoder(list[dict[str, msgspec.Raw]]).decode


class _ChoiceLogprobs(TypedDict, total=False):
    logprobs: msgspec.Raw


class _CompletionLogprobs(TypedDict, total=False):
    choices: list[_ChoiceLogprobs]


_decode_logprobs = msgspec.json.Decoder(_CompletionLogprobs).decode


class LogprobsRequest(Protocol):
    """Which log-probabilities a caller asked for."""

    @property
    def logprobs(self) -> bool:
        """Whether the caller wants log-probabilities."""

    @property
    def top_logprobs(self) -> int:
        """How many alternatives per token the caller wants."""


def visible(body: Mapping[str, Any], request: LogprobsRequest, confidence_asked: bool = False) -> dict[str, Any]:
    """A draft's completion or chunk with only what its caller asked for.

    If the last line, which states a confidence, is cut off, so are its tokens. Log-probabilities become null where the
    tokens of that line cannot be separated from those of the text.

    Parameters
    ----------
    body: the chat completion or chunk as the server sent it.
    request: what the caller asked for.
    confidence_asked: whether the gateway asked for a last line with a confidence (default: no).
    """
    choices, original = [], body.get(ORIGINAL)
    for choice in body.get("choices") or ():
        seen = {**choice}
        if seen.get("logprobs") is not None:
            seen["logprobs"] = _visible_logprobs(seen["logprobs"], request)
        message = seen.get("message")
        if confidence_asked and isinstance(message, dict) and isinstance(message.get("content"), str):
            content, kept = message["content"], without_confidence(message["content"])
            seen["message"] = {**message, "content": kept}
            original = with_text_cut(original, kept) if original and kept != content else original
            if seen.get("logprobs") is not None and kept != content:
                seen["logprobs"] = _cut_logprobs(seen["logprobs"], content, kept)
        choices.append(seen)
    others = {name: value for name, value in body.items() if name != ORIGINAL}
    return {**others, "choices": choices, **({ORIGINAL: original} if original else {})}


def _visible_logprobs(logprobs: Any, request: LogprobsRequest) -> Any:
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


def _cut_logprobs(logprobs: Any, content: str, kept: str) -> dict[str, Any] | None:
    """Those of the tokens that start within what is kept of a text; none if it is not certain which do."""
    try:
        tokens = logprobs["content"]
        parts = [_token_bytes(token) for token in tokens]
    except (KeyError, TypeError, AttributeError, ValueError):
        return None
    text = b"".join(parts)
    # Reasoning may precede the text, and special tokens may follow it. A lone surrogate is in no token's bytes.
    start = text.rfind(content.encode("utf-8", "surrogatepass"))
    end = start + len(kept.encode("utf-8", "surrogatepass"))
    starts = list(accumulate(map(len, parts), initial=0))
    count = bisect_left(starts, end, hi=len(parts))
    # The last token may reach beyond the end with white space, as "2\n" does, but not into the words that are cut off.
    if start < 0 or text[end : starts[count]].strip():
        return None
    return {**logprobs, "content": tokens[:count]}


def _token_bytes(token: Any) -> bytes:
    listed = token.get("bytes")
    return bytes(listed) if isinstance(listed, list) else token["token"].encode()


def without_logprobs(data: bytes) -> bytes:
    """A chat completion or chunk with null for its log-probabilities; nothing else of it is decoded.

    Parameters
    ----------
    data: the completion as the server sent it.

    >>> without_logprobs(b'{"id": 1, "choices": [{"index": 0, "logprobs": {"content": []}}]}')
    b'{"id": 1, "choices": [{"index": 0, "logprobs": null}]}'
    """
    name = data.find(_LOGPROBS)
    if name < 0:
        return data
    try:
        logprobs = bytes(_decode_logprobs(data)["choices"][0]["logprobs"])
    except (*UNDECODABLE, LookupError):
        return _null_logprobs(data)
    start = name + len(_LOGPROBS) + 1
    start += data.startswith(b" ", start)
    end = start + len(logprobs)
    # Within strings the quotes of the field's name would be escaped.
    if data.startswith(logprobs, start) and _LOGPROBS not in data[end:]:
        return b"%bnull%b" % (data[:start], data[end:])
    return _null_logprobs(data)


def _null_logprobs(data: bytes) -> bytes:
    try:
        fields = _decode_fields(data)
        choices = _decode_choices(fields["choices"])
    except (*UNDECODABLE, KeyError):
        body = from_json(data)
        for choice in body.get("choices") or ():
            if "logprobs" in choice:
                choice["logprobs"] = None
        return to_json(body)
    for choice in choices:
        if "logprobs" in choice:
            choice["logprobs"] = _NULL
    fields["choices"] = msgspec.Raw(msgspec.json.encode(choices))
    return msgspec.json.encode(fields)


def event(body: Mapping[str, Any]) -> bytes:
    """A server-sent event with that body."""
    return b"data: " + to_json(body) + b"\n\n"


def event_stream(events: Sequence[StreamEvent]) -> bytes:
    r"""Events of a model server as they are passed on.

    >>> event_stream([StreamEvent.read(b'{"choices": []}')] * 2)
    b'data: {"choices": []}\n\ndata: {"choices": []}\n\n'
    """
    joined = b"data: %b\n\n" % b"\n\ndata: ".join([event.data for event in events])
    if joined.count(b"\n") == 2 * len(events):
        return joined
    # The data of an event has several lines, which is rare.
    return b"".join([b"data: %b\n\n" % event.data.replace(b"\n", b"\ndata: ") for event in events])


def chunks(body: Mapping[str, Any], include_usage: bool) -> Iterator[bytes]:
    """A whole answer as the events of a stream, without the one that ends it.

    Parameters
    ----------
    body: the chat completion.
    include_usage: whether the counts of tokens follow in a last chunk.
    """
    head = {key: value for key, value in body.items() if key not in ("choices", "usage", ORIGINAL)}
    head["object"] = "chat.completion.chunk"
    if ORIGINAL in body:  # all of it: what follows says the same again
        yield event({**head, "choices": [], ORIGINAL: body[ORIGINAL]})
    for choice in body.get("choices") or ():
        index = choice.get("index", 0)
        message = dict(choice.get("message") or {})
        content, calls = message.pop("content", None), message.pop("tool_calls", None)
        first = {"role": "assistant", "content": "" if isinstance(content, str) else content, **message}
        parts: list[dict[str, Any]] = [{"delta": {"content": words}} for words in _word_groups(content)]
        if numbered := _numbered(calls):
            parts.append({"delta": {"tool_calls": numbered}})
        rest = {key: value for key, value in choice.items() if key not in _PLACED}
        parts.append({"delta": {}, **rest, "finish_reason": choice.get("finish_reason") or "stop"})
        if choice.get("logprobs"):
            # All come with the first words or tool calls: which token belongs to which chunk is not known here.
            parts[0]["logprobs"] = choice["logprobs"]
        for part in ({"delta": first}, *parts):
            yield event({**head, "choices": [{"index": index, "finish_reason": None, **part}]})
    if include_usage:
        yield event({**head, "choices": [], "usage": body.get("usage")})


def _numbered(calls: Any) -> list[dict[str, Any]]:
    listed = calls if isinstance(calls, list) else []
    return [{"index": at, **call} for at, call in enumerate(listed) if isinstance(call, dict)]


def _word_groups(content: Any) -> list[str]:
    return [words for words in _WORDS.findall(content) if words] if isinstance(content, str) else []
