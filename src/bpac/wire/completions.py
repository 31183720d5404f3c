"""Whole chat completions from model servers: only what is read of them is decoded."""

import math
from typing import Any, ClassVar, NamedTuple, TypedDict

import msgspec

from bpac.answer import Answer, excerpt
from bpac.errors import AnswerError
from bpac.wire.json import UNDECODABLE, from_json


class Completion(NamedTuple):
    """A whole answer.

    Parameters
    ----------
    raw: the chat completion as the server sent it.
    answer: what is read of it.
    """

    raw: bytes
    answer: Answer

    def body(self) -> dict[str, Any]:
        """The decoded chat completion."""
        body: dict[str, Any] = from_json(self.raw)
        return body


class _TopLogprob(msgspec.Struct, gc=False):
    token: str = ""
    logprob: float | None = None


class _DecodedToken(msgspec.Struct, gc=False):
    """Has the attributes of ``bpac.answer.Token``, and is decoded in a tenth of the time."""

    text: str = msgspec.field(name="token")
    logprob: float
    top_logprobs: list[_TopLogprob] | None = None

    @property
    def top(self) -> tuple[float, ...]:
        # JSON has no infinities: servers write the logarithm of probability 0 as null.
        return tuple(-math.inf if top.logprob is None else top.logprob for top in self.top_logprobs or ())

    @property
    def top_texts(self) -> tuple[str, ...]:
        return tuple(top.token for top in self.top_logprobs or ())


class _DecodedLogprob(msgspec.Struct, gc=False):
    """A token of which only the log-probability is decoded, which takes half the time again."""

    text: ClassVar[str] = ""
    top: ClassVar[tuple[float, ...]] = ()
    top_texts: ClassVar[tuple[str, ...]] = ()
    logprob: float


class Logprobs(msgspec.Struct, gc=False):
    """The ``logprobs`` of a choice."""

    content: list[_DecodedToken] | None = None


class _LogprobsOnly(msgspec.Struct, gc=False):
    content: list[_DecodedLogprob] | None = None


# What ``Answer.from_openai`` reads of a completion. The decoder skips all other fields.
class _Message(TypedDict, total=False):
    content: Any
    reasoning_content: Any
    reasoning: Any
    tool_calls: Any
    refusal: Any


class _Choice(TypedDict, total=False):
    message: _Message
    logprobs: Logprobs | None
    finish_reason: Any


class _ShortChoice(_Choice, total=False):
    logprobs: _LogprobsOnly | None  # type: ignore[misc]


class _Completion(TypedDict, total=False):
    choices: list[_Choice]
    usage: Any


class _ShortCompletion(TypedDict, total=False):
    choices: list[_ShortChoice]
    usage: Any


_decode = msgspec.json.Decoder(_Completion).decode
_decode_logprobs_only = msgspec.json.Decoder(_ShortCompletion).decode


def read_completion(data: bytes, *, logprobs_only: bool = False) -> Completion:
    """A chat completion; ``AnswerError`` if it is none.

    Parameters
    ----------
    data: what the server sent.
    logprobs_only: whether the log-probability is all that is needed of each token.

    >>> read_completion(b'{"choices": [{"message": {"content": "<think>6 * 7</think>42"}}]}').answer.text
    '42'
    """
    try:
        body: Any = _decode_logprobs_only(data) if logprobs_only else _decode(data)
        listed = body["choices"][0].pop("logprobs", None)
    except (*UNDECODABLE, LookupError):
        # Not what most servers send. It may be usable; if it is not, the error says why.
        data = data.decode("utf-8", errors="replace").encode()
        return Completion(data, _read_leniently(from_json(data)))
    known = listed is not None and listed.content is not None
    return Completion(data, Answer.from_openai(body, tuple(listed.content) if known else None))


def _read_leniently(body: Any) -> Answer:
    answer = Answer.from_openai(body)
    # Nothing is read of further choices, but they are rendered like the first one.
    for choice in body["choices"]:
        if not isinstance(choice, dict) or not isinstance(choice.get("message") or {}, dict):
            raise AnswerError(f"not a chat completion: a choice is {excerpt(choice)}")
    return answer
