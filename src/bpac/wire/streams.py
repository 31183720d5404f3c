"""Streamed answers: from bytes to events to pieces to the whole (no IO)."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from bpac.answer import Answer, excerpt
from bpac.errors import AnswerError

# Longer than any line or event a server writes, and short enough to notice in time that it is no stream of events.
LONGEST_LINE = 16 * 2**20


class Events:
    r"""Server-sent events, out of bytes that come as they come.

    >>> events = Events()
    >>> events.feed(b'data: {"a"'), events.feed(b': 1}\n\ndata: [DONE]\n\n')
    ([], ['{"a": 1}', '[DONE]'])
    """

    def __init__(self) -> None:
        self._rest = bytearray()  # of the line that has begun
        self._data = bytearray()  # of the event that has begun
        self._returned = False  # whether the last byte was \r

    def feed(self, data: bytes) -> list[str]:
        """The data of every event that is complete now, or ``AnswerError`` if there will never be any."""
        if not data:
            return []
        # A line may end in \r, \n or both. The first of both ends it at once: the other may never come.
        lines = (data.removeprefix(b"\n") if self._returned else data).splitlines()
        self._returned = data.endswith(b"\r")
        rest = b"" if data.endswith((b"\r", b"\n")) else lines.pop()
        if lines and self._rest:
            lines[0] = bytes(self._rest) + lines[0]
            self._rest.clear()
        # In place, and only what is new is searched: an event in many parts would cost the square of their number.
        self._rest += rest
        events = [event for line in lines if (event := self._line(line)) is not None]
        if len(self._data) + len(self._rest) > LONGEST_LINE:
            endless = "an event" if self._data else "a line"
            raise AnswerError(f"the stream has {endless} without end: it is no stream of events")
        return events

    def _line(self, line: bytes) -> str | None:
        # Comments, which keep a connection open, and other fields mean nothing to us; an empty line ends an event.
        if line.startswith(b"data:"):
            self._data += b"\n"
            self._data += line[6:] if line.startswith(b"data: ") else line[5:]
        if line or not self._data:
            return None
        event = self._data[1:].decode("utf-8", errors="replace")
        self._data.clear()
        return event


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a streamed answer.

    Parameters
    ----------
    body: the chunk as the server sent it.
    """

    body: Mapping[str, Any]

    @classmethod
    def parse(cls, event: str) -> "Piece":
        """The piece in an event.

        >>> Piece.parse('{"choices": [{"delta": {"content": "4"}}]}').text
        '4'
        """
        try:
            body = json.loads(event)
            if body.get("error"):
                raise AnswerError(f"the stream reports an error: {str(body['error'])[:300]}")
            choices = body.get("choices") or []
            if not all(isinstance(choice.get("delta") or {}, dict) for choice in choices):
                raise TypeError("delta is not an object")
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            raise AnswerError(f"not a piece of a chat completion ({error}): {event[:200]}") from error
        return cls(body)

    @property
    def choice(self) -> Mapping[str, Any]:
        """The first choice; empty in pieces that bring only counts."""
        # Pieces of different choices come in any order.
        return next((choice for choice in self.body.get("choices") or () if not choice.get("index")), {})

    @property
    def delta(self) -> Mapping[str, Any]:
        """What the piece adds to the message."""
        return self.choice.get("delta") or {}

    @property
    def text(self) -> str:
        """What it adds to the text; thoughts may be in it where the server does not part them."""
        return self.delta.get("content") or ""

    @property
    def finish_reason(self) -> str | None:
        """Why the model stopped, in the last piece."""
        return self.choice.get("finish_reason")


@dataclass(slots=True)
class Gathering:
    """The pieces so far, put together.

    >>> gathering = Gathering()
    >>> for text in ("4", "2"):
    ...     gathering.add(Piece({"choices": [{"delta": {"content": text}}]}))
    >>> gathering.answer().text
    '42'
    """

    _head: dict[str, Any] = field(default_factory=dict)
    _message: dict[str, str] = field(default_factory=lambda: {"content": ""})
    _logprobs: list[Any] | None = None
    _calls: dict[float, dict[str, Any]] = field(default_factory=dict)
    finish_reason: str | None = None

    def add(self, piece: Piece) -> None:
        """Add the next piece."""
        # Early pieces write null for what only the last one knows: usage, above all.
        self._head |= {name: value for name, value in piece.body.items() if name != "choices" and value is not None}
        try:
            for name in ("role", "content", "reasoning_content", "reasoning"):
                if part := piece.delta.get(name):
                    self._message[name] = part if name == "role" else self._message.get(name, "") + part
            listed = (piece.choice.get("logprobs") or {}).get("content")
            if listed is not None:
                # In place: a copy at each piece would cost the square of their number.
                self._logprobs = [] if self._logprobs is None else self._logprobs
                self._logprobs.extend(listed)
            for call in piece.delta.get("tool_calls") or ():
                self._add_call(call)
        except (TypeError, AttributeError) as error:
            raise AnswerError(f"not a piece of a chat completion ({error}): {excerpt(piece.body)}") from error
        self.finish_reason = piece.finish_reason or self.finish_reason

    def body(self) -> dict[str, Any]:
        """The chat completion the server would have sent in one."""
        message: dict[str, Any] = {"role": "assistant", **self._message}
        if self._calls:
            message["tool_calls"] = [self._calls[index] for index in sorted(self._calls)]
        choice = {"index": 0, "message": message, "finish_reason": self.finish_reason}
        if self._logprobs is not None:
            choice["logprobs"] = {"content": list(self._logprobs)}
        return {**self._head, "object": "chat.completion", "choices": [choice]}

    def answer(self) -> Answer:
        """The answer so far."""
        return Answer.from_openai(self.body())

    def _add_call(self, part: Mapping[str, Any]) -> None:
        # A call comes in parts: its name first, then its arguments, a few letters at a time.
        index = part.get("index")
        if index is None:
            index = 0
        if isinstance(index, bool) or not isinstance(index, int | float) or index % 1 != 0:
            raise TypeError(f"{index!r} is no index of a call")
        call = self._calls.setdefault(index, {"function": {"name": "", "arguments": ""}})
        call |= {name: value for name, value in part.items() if name not in ("index", "function") and value}
        for name, value in (part.get("function") or {}).items():
            call["function"][name] = call["function"].get(name, "") + (value or "")


def gather(pieces: Iterable[Piece]) -> Answer:
    """The answer that the pieces make.

    >>> gather([Piece({"choices": [{"delta": {"content": "42"}, "finish_reason": "stop"}]})]).text
    '42'
    """
    gathering = Gathering()
    for piece in pieces:
        gathering.add(piece)
    return gathering.answer()
