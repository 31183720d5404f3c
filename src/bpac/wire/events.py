"""Pieces of streamed answers off the wire: only what is read is decoded, and what is passed on is not."""

from operator import attrgetter, itemgetter
from typing import Any, NamedTuple, cast

import msgspec

from bpac.answer import Answer, Token, split_reasoning
from bpac.errors import AnswerError
from bpac.wire.completions import Logprobs, Usage, from_json
from bpac.wire.streams import LONGEST_LINE, Events, Gathering, Piece


class _Delta(msgspec.Struct, gc=False):
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: list[msgspec.Raw] | None = None


class _StreamedChoice(msgspec.Struct, gc=False):
    delta: _Delta
    index: int = 0
    finish_reason: str | None = None
    logprobs: Logprobs | None = None


class _Chunk(msgspec.Struct, gc=False):
    choices: list[_StreamedChoice]
    usage: Usage | None = None
    error: Any = None


_DECODER = msgspec.json.Decoder(_Chunk)
_error, _data = attrgetter("error"), itemgetter(0)
_RETURN, _NEWLINE = b"\r\n"  # numbers: bytes are searched for them in an eighth of the time


class SseReader:
    r"""The texts of events, out of bytes that come as they come: those of nearly all servers in a fraction of the time.

    >>> reader = SseReader()
    >>> reader.feed(b'data: {"a"'), reader.feed(b': 1}\n\ndata: [DONE]\n\n')
    ([], [b'{"a": 1}', b'[DONE]'])
    """

    def __init__(self) -> None:
        self._rest = bytearray()  # of the event that has begun
        self._patient: Events | None = None

    def feed(self, data: bytes) -> list[bytes]:
        """The text of every event that is complete now, or ``AnswerError`` if there will never be any."""
        if self._patient is None:
            plain = _RETURN not in data
            whole = plain and not self._rest and data.startswith(b"data: ") and data.endswith(b"\n\n")
            if whole and data.find(b"\n") == len(data) - 2:
                return [data[6:-2]]  # one event by itself, as they come while a model writes
            if plain and _NEWLINE not in data:
                # In place, and nothing is searched: an event in many parts would cost the square of their number.
                self._rest += data
                return self._limited([])
            found = bytes(self._rest) + data if self._rest else data
            *blocks, rest = found.split(b"\n\n")
            # What is left may end in a line's end, of which the second half is to come, and hold no other.
            plain = plain and rest.find(b"\n", 0, -1) < 0
            if plain and (not blocks or _are_lines(found, len(blocks), rest)):
                self._rest = bytearray(rest)
                return self._limited([block[6:] for block in blocks])
            # Comments, other fields, other ends of lines: from here on, line by line.
            self._patient, data = Events(), found
            self._rest.clear()
        return [text.encode() for text in self._patient.feed(data)]

    def _limited(self, texts: list[bytes]) -> list[bytes]:
        if len(self._rest) > LONGEST_LINE:
            raise AnswerError("the stream has a line without end: it is no stream of events")
        return texts


def _are_lines(found: bytes, count: int, rest: bytes) -> bool:
    """Whether each of so many events, before what is left, is one line of data: by counting, not one by one."""
    beginnings = found.startswith(b"data: ") + found.count(b"\n\ndata: ")
    ends = found.count(b"\n") - rest.count(b"\n")
    return beginnings == count + rest.startswith(b"data: ") and ends == 2 * count


class Event(NamedTuple):
    """A piece of a streamed answer.

    Parameters
    ----------
    data: the text of the event, as the server sent it.
    chunk: what of it is read; none if it is not what every server sends.
    """

    data: bytes
    chunk: _Chunk | None

    @classmethod
    def read(cls, data: bytes) -> "Event":
        """The event with that text, or ``AnswerError`` if it is no piece of an answer.

        >>> Event.read(b'{"choices": [{"delta": {"content": "4"}, "finish_reason": "stop"}]}').finishes
        True
        """
        try:
            chunk = _DECODER.decode(data)
            if not chunk.error:
                return cls(data, chunk)
        except (msgspec.DecodeError, RecursionError, UnicodeError):
            pass
        text = data.decode("utf-8", errors="replace")
        Piece.parse(text)  # says what is wrong with it, unless it is usable all the same
        return cls(text.encode(), None)

    def body(self) -> dict[str, Any]:
        """All of it."""
        body: dict[str, Any] = from_json(self.data)
        return body

    @property
    def finishes(self) -> bool:
        """Whether it says why the model stopped."""
        if self.chunk is None:
            return Piece.parse(self.data.decode()).finish_reason is not None
        return any(choice.finish_reason is not None for choice in self.chunk.choices)

    @property
    def only_counts(self) -> bool:
        """Whether it brings the counts of tokens and nothing else."""
        if self.chunk is None:
            body = self.body()
            return not body.get("choices") and body.get("usage") is not None
        return not self.chunk.choices and self.chunk.usage is not None


def read_events(texts: list[bytes]) -> list[Event]:
    """The events with those texts, or ``AnswerError``: in one go if all are what every server sends."""
    # Each is decoded by itself. Joined to one list they would not be any faster, and broken ones could make up for
    # each other: no count and no look at their ends can tell '{"a": [{}', '{}]}' and '{}, {}' from three pieces.
    try:
        chunks = [*map(_DECODER.decode, texts)]
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        chunks = []
    if chunks and not any(map(_error, chunks)):
        return [*map(Event, texts, chunks)]
    return [Event.read(text) for text in texts]


def sent(events: list[Event]) -> bytes:
    r"""Events as they go over the wire.

    >>> sent([Event.read(b'{"choices": []}')] * 2)
    b'data: {"choices": []}\n\ndata: {"choices": []}\n\n'
    """
    texts = [event.data for event in events]
    together = b"data: %b\n\n" % b"\n\ndata: ".join(texts)
    if together.count(b"\n") == 2 * len(texts):  # nearly always
        return together
    return b"".join([b"data: %b\n\n" % text.replace(b"\n", b"\ndata: ") for text in texts])


def without_counts(events: list[Event]) -> list[Event]:
    """Those that bring more than counts of tokens."""
    return [event for event in events if (event.chunk is not None and event.chunk.choices) or not event.only_counts]


class Transcript:
    """The pieces so far, put together.

    >>> transcript = Transcript()
    >>> transcript.add([Event.read(b'{"choices": [{"delta": {"content": "%b"}}]}' % text) for text in (b"4", b"2")])
    >>> transcript.answer().text
    '42'
    """

    def __init__(self) -> None:
        # As they were sent: what was read of them takes several times the memory.
        self._texts: list[bytes] = []
        self._plain = True
        self._content: list[str] = []
        self._thoughts: list[str] = []
        self.tokens: list[Any] | None = None
        self._usage = Usage()
        self._finish_reason = ""

    def add(self, events: list[Event]) -> None:
        """Add the next pieces."""
        self._texts.extend(map(_data, events))
        for _, chunk in events:
            if chunk is None:
                self._plain = False
                continue
            self._usage = chunk.usage or self._usage
            for choice in chunk.choices:
                if not choice.index:
                    self._add(choice)

    def _add(self, choice: _StreamedChoice) -> None:
        delta = choice.delta
        if delta.content:
            self._content.append(delta.content)
        if delta.reasoning_content or delta.reasoning:
            self._thoughts.append(delta.reasoning_content or delta.reasoning or "")
        if delta.tool_calls is not None:
            self._plain = False
        if choice.logprobs is not None and choice.logprobs.content is not None:
            self.tokens = self.tokens if self.tokens is not None else []
            self.tokens += choice.logprobs.content
        self._finish_reason = choice.finish_reason or self._finish_reason

    def answer(self) -> Answer:
        """The answer so far, or ``AnswerError`` if the pieces make none."""
        if not self._plain:
            # Calls come in parts, and some servers have ways of their own: the patient reader knows them.
            gathering = Gathering()
            for sent_text in self._texts:
                gathering.add(Piece.parse(sent_text.decode("utf-8", errors="replace")))
            return gathering.answer()
        thought, text = "", "".join(self._content)
        if "think>" in text:
            thought, text = split_reasoning(text)
        return Answer(
            text=text,
            reasoning="".join(self._thoughts) or thought,
            tokens=None if self.tokens is None else cast("tuple[Token, ...]", tuple(self.tokens)),
            completion_tokens=self._usage.completion_tokens or len(self.tokens or ()),
            prompt_tokens=self._usage.prompt_tokens,
            finish_reason=self._finish_reason or "stop",
        )
