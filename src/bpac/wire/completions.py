"""Whole answers off the wire: only what is read is decoded, and what is passed on is not."""

import json
import math
from typing import Annotated, Any, ClassVar, NamedTuple, cast

import msgspec
import orjson

from bpac.answer import MOST_TOKENS, Answer, Token, excerpt, split_reasoning
from bpac.errors import AnswerError

_FIELD = b'"logprobs":'


class Completion(NamedTuple):
    """A whole answer.

    Parameters
    ----------
    raw: the chat completion as the server sent it.
    answer: what of it is read.
    logprobs: its log-probabilities as they stand in ``raw``; empty if they were not met where they are expected.
    """

    raw: bytes
    answer: Answer
    logprobs: bytes = b""

    def body(self) -> dict[str, Any]:
        """All of it."""
        body: dict[str, Any] = from_json(self.raw)
        return body

    def without_logprobs(self) -> bytes:
        """It without its log-probabilities."""
        # Nearly always they stand in one place and can be cut out there. Within texts the marks would be escaped.
        start = self.raw.find(_FIELD) + len(_FIELD)
        start += self.raw.startswith(b" ", start)
        end = start + len(self.logprobs)
        if self.logprobs and self.raw.startswith(self.logprobs, start) and _FIELD not in self.raw[end:]:
            return b"%bnull%b" % (self.raw[:start], self.raw[end:])
        return without_logprobs(self.raw)


class _Top(msgspec.Struct, gc=False):
    token: str = ""
    logprob: float | None = None


class _Token(msgspec.Struct, gc=False):
    """A token that reads like ``bpac.answer.Token`` and is made in a tenth of the time."""

    text: str = msgspec.field(name="token")
    logprob: float
    top_logprobs: list[_Top] | None = None

    @property
    def top(self) -> tuple[float, ...]:
        # JSON has no infinities: servers write the logarithm of probability 0 as null.
        return tuple(-math.inf if top.logprob is None else top.logprob for top in self.top_logprobs or ())

    @property
    def top_texts(self) -> tuple[str, ...]:
        return tuple(top.token for top in self.top_logprobs or ())


class _Number(msgspec.Struct, gc=False):
    """A token of which only the log-probability is read, in half the time again."""

    text: ClassVar[str] = ""
    top: ClassVar[tuple[float, ...]] = ()
    top_texts: ClassVar[tuple[str, ...]] = ()
    logprob: float


class Logprobs(msgspec.Struct, gc=False):
    """Log-probabilities, as far as they are read."""

    content: list[_Token] | None = None


class _Numbers(msgspec.Struct, gc=False):
    content: list[_Number] | None = None


class _Message(msgspec.Struct, gc=False):
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: list[dict[str, Any]] | None = None


class _Choice(msgspec.Struct, gc=False):
    message: _Message
    logprobs: msgspec.Raw = msgspec.Raw()
    finish_reason: str | None = None


# What is no such number is left to the patient reader, which takes it for not said (``bpac.answer.token_count``).
_Count = Annotated[int, msgspec.Meta(ge=0, le=MOST_TOKENS)]


class Usage(msgspec.Struct, gc=False):
    """Counts of tokens, as far as they are read."""

    completion_tokens: _Count | None = None
    prompt_tokens: _Count | None = None


class _Body(msgspec.Struct, gc=False):
    choices: list[_Choice]
    usage: Usage | None = None


_DECODER = msgspec.json.Decoder(_Body)
_LOGPROBS = msgspec.json.Decoder(Logprobs | None)
_NUMBERS = msgspec.json.Decoder(_Numbers | None)


def read_completion(data: bytes, *, numbers_only: bool = False) -> Completion:
    """A chat completion, or ``AnswerError`` if it is none.

    Parameters
    ----------
    data: what the server sent.
    numbers_only: whether of its tokens nothing but their log-probabilities is wanted.

    >>> read_completion(b'{"choices": [{"message": {"content": "<think>6 * 7</think>42"}}]}').answer.text
    '42'
    """
    try:
        body = _DECODER.decode(data)
        choice = body.choices[0]
        raw = bytes(choice.logprobs)
        decoder: msgspec.json.Decoder[Any] = _NUMBERS if numbers_only else _LOGPROBS
        logprobs = decoder.decode(raw) if raw else None
    except (msgspec.DecodeError, RecursionError, IndexError, UnicodeError):
        # Not what every server sends, but it may be usable; or else the error says why not.
        data = data.decode("utf-8", errors="replace").encode()
        return Completion(data, _patiently_read(from_json(data)))
    usage, message = body.usage or Usage(), choice.message
    thought, text = "", message.content or ""
    if "think>" in text:
        thought, text = split_reasoning(text)
    listed = logprobs.content if logprobs is not None else None
    answer = Answer(
        text=text,
        reasoning=message.reasoning_content or message.reasoning or thought,
        tokens=None if listed is None else cast("tuple[Token, ...]", tuple(listed)),
        completion_tokens=usage.completion_tokens or len(listed or ()),
        prompt_tokens=usage.prompt_tokens,
        finish_reason=choice.finish_reason or "stop",
        tool_calls=tuple(message.tool_calls or ()),
    )
    return Completion(data, answer, raw if listed is not None else b"")


def _patiently_read(body: Any) -> Answer:
    answer = Answer.from_openai(body)
    # Nothing is read of further choices, but they are shown as the first one is.
    for choice in body["choices"]:
        if not isinstance(choice, dict) or not isinstance(choice.get("message") or {}, dict):
            raise AnswerError(f"not a chat completion: a choice is {excerpt(choice)}")
    return answer


_OUTER = msgspec.json.Decoder(dict[str, msgspec.Raw])
_CHOICES = msgspec.json.Decoder(list[dict[str, msgspec.Raw]])
_NULL = msgspec.Raw(b"null")


def without_logprobs(data: bytes) -> bytes:
    """A chat completion without its log-probabilities; nothing else of it is looked at.

    >>> without_logprobs(b'{"id": 1, "choices": [{"index": 0, "logprobs": {"content": []}}]}')
    b'{"id":1,"choices":[{"index":0,"logprobs":null}]}'
    """
    if b'"logprobs"' not in data:
        return data
    try:
        body = _OUTER.decode(data)
        choices = _CHOICES.decode(body["choices"])
    except (msgspec.DecodeError, RecursionError, KeyError, UnicodeError):
        return _patiently_without_logprobs(data)
    for choice in choices:
        if "logprobs" in choice:
            choice["logprobs"] = _NULL
    body["choices"] = msgspec.Raw(msgspec.json.encode(choices))
    return msgspec.json.encode(body)


def _patiently_without_logprobs(data: bytes) -> bytes:
    body = from_json(data)
    for choice in body.get("choices") or ():
        if "logprobs" in choice:
            choice["logprobs"] = None
    return to_json(body)


def from_json(data: bytes) -> Any:
    r"""What a server wrote, or ``AnswerError``: also what is JSON for Python only, such as ``NaN`` or half a letter.

    >>> from_json(b'["\\ud83d", NaN]')
    ['\ud83d', nan]
    """
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        pass
    try:
        return json.loads(data.decode("utf-8", errors="replace"))
    except (ValueError, RecursionError) as error:
        raise AnswerError(f"not JSON ({error})") from error


def to_json(value: Any) -> bytes:
    r"""All that ``from_json`` reads, as JSON that everybody reads; what is no number is null.

    >>> to_json(["\ud83d", 2**64, math.nan])
    b'["\\ud83d",18446744073709551616,null]'
    """
    try:
        return orjson.dumps(value)
    except TypeError:
        pass
    try:
        # Half a letter is escaped. Not a number, which orjson makes null too, is left out on the way back.
        numbers_only = json.loads(json.dumps(value), parse_constant=lambda _: None)
        return json.dumps(numbers_only, separators=(",", ":")).encode()
    except RecursionError as error:
        raise AnswerError("an answer of lists in lists in lists cannot be written") from error
