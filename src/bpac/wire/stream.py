"""Streamed chat completions: the chunks that server-sent events carry, and the answer that they add up to."""

from collections.abc import Mapping
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec

from bpac.answer import Answer, excerpt, read_tokens
from bpac.errors import AnswerError
from bpac.wire.completions import Logprobs
from bpac.wire.json import UNDECODABLE, from_json

# The data of the event that ends a stream.
DONE = b"[DONE]"


class _Delta(msgspec.Struct, gc=False):
    content: Any = None
    reasoning_content: Any = None
    reasoning: Any = None
    tool_calls: Any = None
    refusal: Any = None


class _StreamedChoice(msgspec.Struct, gc=False):
    delta: _Delta
    index: Any = 0
    finish_reason: Any = None
    logprobs: Logprobs | None = None


class _Chunk(msgspec.Struct, gc=False):
    choices: list[_StreamedChoice] = []
    usage: Any = None
    error: Any = None


_decode = msgspec.json.Decoder(_Chunk).decode
_error = attrgetter("error")


class StreamEvent(NamedTuple):
    """One event of a streamed answer.

    Parameters
    ----------
    data: the chunk as the server sent it.
    chunk: what is read of it.
    """

    data: bytes
    chunk: _Chunk

    @classmethod
    def read(cls, data: bytes) -> "StreamEvent":
        """The event with that data; ``AnswerError`` if it is no chunk of a chat completion.

        >>> StreamEvent.read(b'{"choices": [{"delta": {"content": "4"}}]}').text
        '4'
        """
        try:
            chunk = _decode(data)
            if not chunk.error:
                return cls(data, chunk)
        except UNDECODABLE:
            pass
        data = data.decode("utf-8", errors="replace").encode()
        return cls(data, _read_leniently(from_json(data)))

    def body(self) -> dict[str, Any]:
        """The decoded chunk."""
        body: dict[str, Any] = from_json(self.data)
        return body

    @property
    def text(self) -> str:
        """What it adds to the text. Reasoning may be part of it where the server does not separate the two."""
        parts = [choice.delta.content for choice in self.chunk.choices if not choice.index]
        return "".join(part for part in parts if isinstance(part, str))

    @property
    def finishes(self) -> bool:
        """Whether it gives the finish reason of a choice."""
        return any(choice.finish_reason is not None for choice in self.chunk.choices)

    @property
    def only_usage(self) -> bool:
        """Whether it contains only token counts."""
        return not self.chunk.choices and self.chunk.usage is not None


def read_events(data: list[bytes]) -> list[StreamEvent]:
    """The events with those data; ``AnswerError`` if one is no chunk of a chat completion."""
    # Each is decoded by itself. Joined to one list they would not be decoded faster, and malformed ones could complete
    # each other: neither a count nor a look at their ends tells '{"a": [{}', '{}]}' and '{}, {}' from three chunks.
    try:
        chunks = [*map(_decode, data)]
    except UNDECODABLE:
        chunks = []
    if chunks and not any(map(_error, chunks)):
        return [*map(StreamEvent, data, chunks)]
    return [StreamEvent.read(one) for one in data]


def before_done(data: list[bytes]) -> tuple[list[bytes], bool]:
    """The data of the events before the one that ends the stream, and whether that one is there.

    >>> before_done([b"{}", b"[DONE]"]), before_done([b"{}"])
    (([b'{}'], True), ([b'{}'], False))
    """
    if DONE in data:
        return data[: data.index(DONE)], True
    if data and data[-1].strip() == DONE:
        return data[:-1], True
    return data, False


def without_usage(events: list[StreamEvent]) -> list[StreamEvent]:
    """The events that bring more than counts of tokens."""
    return [event for event in events if event.chunk.choices or event.chunk.usage is None]


def _read_leniently(body: Any) -> _Chunk:
    """The chunk in a decoded event, also where fields are missing or null, or of kinds that only some servers send."""
    try:
        if body.get("error"):
            raise AnswerError(f"the stream reports an error: {excerpt(body['error'], 300)}")
        return _Chunk([_lenient_choice(choice) for choice in body.get("choices") or ()], body.get("usage"))
    except (TypeError, AttributeError) as error:
        raise AnswerError(f"not a chunk of a chat completion ({error}): {excerpt(body)}") from error


def _lenient_choice(choice: Mapping[str, Any]) -> _StreamedChoice:
    delta = choice.get("delta") or {}
    if not isinstance(delta, dict):
        raise TypeError("delta is not an object")
    known = {name: delta.get(name) for name in _Delta.__struct_fields__}
    return _StreamedChoice(_Delta(**known), choice.get("index"), choice.get("finish_reason"), choice.get("logprobs"))


class Transcript:
    """Puts the events of a stream together to an answer.

    >>> transcript = Transcript()
    >>> for text in (b"4", b"2"):
    ...     transcript.add([StreamEvent.read(b'{"choices": [{"delta": {"content": "%b"}}]}' % text)])
    >>> transcript.answer().text
    '42'
    """

    def __init__(self) -> None:
        self._content: list[Any] = []
        self._reasoning_content: list[Any] = []
        self._reasoning: list[Any] = []
        self._calls: list[Any] = []
        self._refused = False
        self.tokens: list[Any] | None = None
        self._usage: Any = None
        self._finish_reason: Any = None
        self._error: AnswerError | None = None

    def add(self, events: list[StreamEvent]) -> None:
        """Add the next events. What cannot be read is no error before ``answer``, so that it can be passed on."""
        for _, chunk in events:
            if chunk.usage is not None:  # null in the events before the last
                self._usage = chunk.usage
            for choice in chunk.choices:
                if not choice.index:  # only the first choice is read, and choices come in any order
                    self._add(choice)

    def _add(self, choice: _StreamedChoice) -> None:
        delta = choice.delta
        if delta.content:
            self._content.append(delta.content)
        if delta.reasoning_content:
            self._reasoning_content.append(delta.reasoning_content)
        if delta.reasoning:
            self._reasoning.append(delta.reasoning)
        if delta.tool_calls:
            self._calls.append(delta.tool_calls)
        if delta.refusal:
            self._refused = True
        if choice.logprobs is not None:
            self._add_tokens(choice.logprobs)
        self._finish_reason = choice.finish_reason or self._finish_reason

    def _add_tokens(self, logprobs: Any) -> None:
        try:
            listed = logprobs.content if isinstance(logprobs, Logprobs) else read_tokens(logprobs)
        except AnswerError as error:
            self._error = self._error or error
            return
        if listed is not None:
            self.tokens = self.tokens if self.tokens is not None else []
            self.tokens += listed

    def answer(self) -> Answer:
        """The answer so far; ``AnswerError`` if the events do not add up to one."""
        if self._error is not None:
            raise self._error
        try:
            message = {
                "content": "".join(self._content),
                "reasoning_content": "".join(self._reasoning_content),
                "reasoning": "".join(self._reasoning),
                "tool_calls": _joined_calls(self._calls),
                "refusal": self._refused,
            }
        except (TypeError, AttributeError) as error:
            raise AnswerError(f"not chunks of a chat completion ({error})") from error
        choice = {"message": message, "finish_reason": self._finish_reason}
        tokens = None if self.tokens is None else tuple(self.tokens)
        return Answer.from_openai({"choices": [choice], "usage": self._usage}, tokens)


def _joined_calls(deltas: list[Any]) -> list[dict[str, Any]]:
    """The tool calls, each of which comes in parts: its name first, then its arguments, a few characters at a time."""
    calls: dict[float, dict[str, Any]] = {}
    for part in (part for delta in deltas for part in delta):
        index = part.get("index")
        index = 0 if index is None else index
        if isinstance(index, bool) or not isinstance(index, int | float) or index % 1 != 0:
            raise TypeError(f"{index!r} is not the index of a tool call")
        call = calls.setdefault(index, {"function": {"name": "", "arguments": ""}})
        call |= {name: value for name, value in part.items() if name not in ("index", "function") and value}
        for name, value in (part.get("function") or {}).items():
            call["function"][name] = call["function"].get(name, "") + (value or "")
    return [calls[index] for index in sorted(calls)]
