"""Pieces of streamed answers off the wire: only what is read is decoded, and what is passed on is not."""

from typing import Any, NamedTuple, cast

import msgspec
import orjson

from bpac.answer import Answer, Token, split_reasoning
from bpac.gateway.completions import Logprobs, Usage
from bpac.models.streams import Gathering, Piece


class _Delta(msgspec.Struct, gc=False):
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: msgspec.Raw = msgspec.Raw()


class _Choice(msgspec.Struct, gc=False):
    delta: _Delta
    index: int = 0
    finish_reason: str | None = None
    logprobs: Logprobs | None = None


class _Chunk(msgspec.Struct, gc=False):
    choices: list[_Choice]
    usage: Usage | None = None
    error: msgspec.Raw = msgspec.Raw()


_DECODER = msgspec.json.Decoder(_Chunk)


class Event(NamedTuple):
    """A piece of a streamed answer.

    Parameters
    ----------
    data: the text of the event, as the server sent it.
    chunk: what of it is read; none if it is not what every server sends.
    """

    data: str
    chunk: _Chunk | None

    @classmethod
    def read(cls, data: str) -> "Event":
        """The event with that text, or ``AnswerError`` if it is no piece of an answer.

        >>> Event.read('{"choices": [{"delta": {"content": "4"}, "finish_reason": "stop"}]}').finishes
        True
        """
        try:
            chunk = _DECODER.decode(data)
        except (msgspec.DecodeError, RecursionError, UnicodeError):
            chunk = None
        if chunk is None or bytes(chunk.error):
            Piece.parse(data)  # says what is wrong with it, unless it is usable all the same
            return cls(data, None)
        return cls(data, chunk)

    def body(self) -> dict[str, Any]:
        """All of it."""
        body: dict[str, Any] = orjson.loads(self.data)
        return body

    @property
    def finishes(self) -> bool:
        """Whether it says why the model stopped."""
        if self.chunk is None:
            return Piece.parse(self.data).finish_reason is not None
        return any(choice.finish_reason is not None for choice in self.chunk.choices)

    @property
    def only_counts(self) -> bool:
        """Whether it brings the counts of tokens and nothing else."""
        if self.chunk is None:
            body = self.body()
            return not body.get("choices") and body.get("usage") is not None
        return not self.chunk.choices and self.chunk.usage is not None


class Transcript:
    """The pieces so far, put together.

    >>> transcript = Transcript()
    >>> for text in ("4", "2"):
    ...     transcript.add(Event.read('{"choices": [{"delta": {"content": "%s"}}]}' % text))
    >>> transcript.answer().text
    '42'
    """

    def __init__(self) -> None:
        self._events: list[Event] = []
        self._plain = True
        self._content: list[str] = []
        self._thoughts: list[str] = []
        self.tokens: list[Any] | None = None
        self._usage = Usage()
        self._finish_reason = ""

    def add(self, event: Event) -> None:
        """Add the next piece."""
        self._events.append(event)
        if event.chunk is None:
            self._plain = False
            return
        self._usage = event.chunk.usage or self._usage
        for choice in event.chunk.choices:
            if choice.index:
                continue
            delta = choice.delta
            if delta.content:
                self._content.append(delta.content)
            if delta.reasoning_content or delta.reasoning:
                self._thoughts.append(delta.reasoning_content or delta.reasoning or "")
            if bytes(delta.tool_calls) not in (b"", b"null"):
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
            for event in self._events:
                gathering.add(Piece.parse(event.data))
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
