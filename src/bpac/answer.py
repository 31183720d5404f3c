"""What a model answered: its text, what it thought, and how sure it was of every token."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bpac.errors import AnswerError

# No answer comes near it: a server that says more is mistaken, and one such number would spoil every sum.
MOST_TOKENS = 10**9

# Why a model stopped of its own accord, as servers put it. Any other reason means that something stopped it.
FINISHED = frozenset({"stop", "eos", "eos_token", "end_turn", "stop_sequence", "complete", "completed"})
CALLED = frozenset({"tool_calls", "function_call", "tool_use"})

_HALF_LETTERS = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Token:
    """A token of an answer.

    Parameters
    ----------
    text: the token.
    logprob: its log-probability; NaN if the server listed the token without one.
    top: log-probabilities of the likeliest tokens in its place, where the server gave them.
    top_texts: those tokens, in the same order.
    """

    text: str
    logprob: float
    top: tuple[float, ...] = ()
    top_texts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """A model's answer.

    Parameters
    ----------
    text: the answer, without what the model thought before it.
    reasoning: what it thought, where that can be seen.
    tokens: every token generated, thinking included; none if the server gave no log-probabilities.
    completion_tokens: how many tokens were generated, thinking included.
    prompt_tokens: how many tokens the question had; none if the server did not say.
    finish_reason: why the model stopped: ``stop``, ``length``, ``tool_calls`` …
    tool_calls: the calls it wants made, as the server gave them.
    """

    text: str
    reasoning: str = ""
    tokens: tuple[Token, ...] | None = None
    completion_tokens: int = 0
    prompt_tokens: int | None = None
    finish_reason: str = "stop"
    tool_calls: tuple[Mapping[str, Any], ...] = ()

    @property
    def finished(self) -> bool:
        """Whether the model came to an end by itself: what was cut off may have gone on in any way.

        >>> Answer("4", finish_reason="length").finished
        False
        """
        reason = self.finish_reason.lower()
        return reason in FINISHED or (reason in CALLED and bool(self.tool_calls))

    @classmethod
    def from_openai(cls, body: object) -> "Answer":
        """The first choice of a chat completion, as any OpenAI-compatible server returns it.

        >>> Answer.from_openai({"choices": [{"message": {"content": "<think>6 · 7</think>42"}}]}).text
        '42'
        """
        try:
            choice: Mapping[str, Any] = body["choices"][0]  # type: ignore[index]
            message: Mapping[str, Any] = choice["message"]
            reasoning = _text(message.get("reasoning_content") or message.get("reasoning"))
            thought, text = split_reasoning(_text(message.get("content")))
            usage = body.get("usage")  # type: ignore[attr-defined]
            counts: Mapping[str, Any] = usage if isinstance(usage, Mapping) else {}
            tokens = _tokens(choice.get("logprobs"))
            return cls(
                text=text,
                reasoning=reasoning or thought,
                tokens=tokens,
                completion_tokens=token_count(counts.get("completion_tokens")) or len(tokens or ()),
                prompt_tokens=token_count(counts.get("prompt_tokens")),
                finish_reason=_text(choice.get("finish_reason")) or "stop",
                tool_calls=tuple(dict(call) for call in message.get("tool_calls") or ()),
            )
        except (LookupError, TypeError, AttributeError, ValueError, OverflowError, RecursionError) as error:
            raise AnswerError(f"not a chat completion ({type(error).__name__}: {error}): {excerpt(body)}") from error


def excerpt(value: object, length: int = 200) -> str:
    """What a server sent, as far as it fits in a line, or in so many characters."""
    try:
        return str(value)[:length]
    except RecursionError:
        return "lists in lists in lists"


def token_count(value: object) -> int | None:
    """How many tokens a server says there are; none if it says nothing that can be meant.

    >>> token_count(12), token_count(12.0), token_count(-1), token_count("12")
    (12, 12, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MOST_TOKENS:
        return None
    return int(value) if value == int(value) else None


def split_reasoning(content: str) -> tuple[str, str]:
    r"""What was thought and what was answered.

    >>> split_reasoning("<think>6 · 7</think>\n42")
    ('6 · 7', '42')
    >>> split_reasoning("<think>6 · 7 is")          # cut off before any answer
    ('6 · 7 is', '')
    """
    if "think" not in content:
        return "", content
    # A missing end means that the model ran out of tokens while it thought, a missing beginning that the chat template
    # wrote it into the prompt.
    before, ended, said = content.partition("</think>")
    thought = before.strip()
    if ended:
        return thought.removeprefix("<think>").strip(), said.lstrip()
    if thought.startswith("<think>"):
        return thought.removeprefix("<think>").strip(), ""
    return "", content


def _text(value: Any) -> str:
    """A text, also one that comes as a list of parts."""
    if isinstance(value, list):
        return "".join(_text(part.get("text")) for part in value)
    if isinstance(value, str):
        return _mended(value)
    if value is None:
        return ""
    raise TypeError(f"{value!r} is not a text")


def _mended(text: str) -> str:
    """A text that can be written: servers cut letters outside the BMP in halves, which come in different pieces."""
    if text.isascii() or not _HALF_LETTERS.search(text):
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _tokens(logprobs: Mapping[str, Any] | None) -> tuple[Token, ...] | None:
    if not logprobs or logprobs.get("content") is None:
        return None
    return tuple(_token(token) for token in logprobs["content"])


def _token(token: Mapping[str, Any]) -> Token:
    others = token.get("top_logprobs") or ()
    return Token(
        text=_mended(str(token["token"])),
        logprob=_logprob(token, missing=math.nan),
        # JSON has no infinities: servers write the logarithm of probability 0 as null.
        top=tuple(_logprob(other, missing=-math.inf) for other in others),
        top_texts=tuple(_mended(str(other.get("token", ""))) for other in others),
    )


def _logprob(token: Mapping[str, Any], missing: float) -> float:
    value = token.get("logprob")
    return missing if value is None else float(value)
