"""A model's answer: its text, its reasoning, and the log-probability of every token."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bpac.errors import AnswerError

# No answer has more tokens: a server that reports more is wrong, and one such number would spoil every sum.
MOST_TOKENS = 10**9

# Finish reasons of a model that came to its end, as different servers name them. All others mean that it was cut off.
FINISHED = frozenset({"stop", "eos", "eos_token", "end_turn", "stop_sequence", "complete", "completed"})
CALLED = frozenset({"tool_calls", "function_call", "tool_use"})

# What reading a value of an unexpected kind raises.
_WRONG_KIND = (LookupError, TypeError, AttributeError, ValueError, OverflowError, RecursionError)


@dataclass(frozen=True, slots=True)
class Token:
    """A token of an answer.

    Parameters
    ----------
    text: the token.
    logprob: its log-probability; NaN if the server listed the token without one.
    top: log-probabilities of the likeliest tokens at its position, if the server listed them.
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
    text: the answer, without the reasoning before it.
    reasoning: the reasoning, if the server shows it.
    tokens: every token generated, reasoning included; none if the server listed no log-probabilities.
    completion_tokens: how many tokens were generated, reasoning included.
    prompt_tokens: how many tokens the prompt had; none if the server did not report it.
    cached_tokens: how many of them the server took from its cache; none if the server did not report it.
    finish_reason: why the model stopped: ``stop``, ``length``, ``tool_calls`` …; ``refusal`` if it refused to answer.
    tool_calls: the tool calls, as the server sent them.
    stated_confidence: the reply to a separate question about the confidence; none if there was no such question.
    """

    text: str
    reasoning: str = ""
    tokens: tuple[Token, ...] | None = None
    completion_tokens: int = 0
    prompt_tokens: int | None = None
    finish_reason: str = "stop"
    tool_calls: tuple[Mapping[str, Any], ...] = ()
    cached_tokens: int | None = None
    stated_confidence: str | None = None

    @property
    def confidence_text(self) -> str:
        """The text in which the model may state its confidence: a separate reply, or the answer itself."""
        return self.text if self.stated_confidence is None else self.stated_confidence

    @property
    def finished(self) -> bool:
        """Whether the model came to its end: an answer that was cut off might have gone on in any way.

        >>> Answer("4", finish_reason="length").finished
        False
        """
        reason = self.finish_reason.lower()
        return reason in FINISHED or (reason in CALLED and bool(self.tool_calls))

    @classmethod
    def from_openai(cls, body: object, tokens: tuple[Token, ...] | None = None) -> "Answer":
        """The first choice of a chat completion, as any OpenAI-compatible server returns it; or ``AnswerError``.

        Parameters
        ----------
        body: the decoded chat completion.
        tokens: its tokens, if they have been decoded already (default: read from ``logprobs`` in the body).

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
            tokens = read_tokens(choice.get("logprobs")) if tokens is None else tokens
            prompt = token_count(counts.get("prompt_tokens"))
            return cls(
                text=text,
                reasoning=reasoning or thought,
                tokens=tokens,
                completion_tokens=token_count(counts.get("completion_tokens")) or len(tokens or ()),
                prompt_tokens=prompt,
                # A model that refuses may have said something before, and servers say that it stopped.
                finish_reason="refusal" if message.get("refusal") else _text(choice.get("finish_reason")) or "stop",
                tool_calls=tuple(map(dict, message.get("tool_calls") or ())),
                cached_tokens=None if prompt is None else cached_tokens(counts, prompt),
            )
        except _WRONG_KIND as error:
            raise AnswerError(f"not a chat completion ({type(error).__name__}: {error}): {excerpt(body)}") from error


def read_tokens(logprobs: object) -> tuple[Token, ...] | None:
    """The tokens in the ``logprobs`` of a choice, none if they are not listed; ``AnswerError`` if they cannot be read.

    >>> read_tokens({"content": [{"token": "4", "logprob": -0.1}]})
    (Token(text='4', logprob=-0.1, top=(), top_texts=()),)
    """
    try:
        listed = logprobs.get("content") if logprobs else None  # type: ignore[attr-defined]
        return None if listed is None else tuple(_token(token) for token in listed)
    except _WRONG_KIND as error:
        described = f"{type(error).__name__}: {error}"
        raise AnswerError(f"not a chat completion's logprobs ({described}): {excerpt(logprobs)}") from error


def excerpt(value: object, length: int = 200) -> str:
    """The first characters of what a server sent, for an error message."""
    try:
        return str(value)[:length]
    except RecursionError:
        return "a deeply nested value"


def token_count(value: object) -> int | None:
    """A count of tokens that a server reported; none if it is missing or not a possible count.

    >>> token_count(12), token_count(12.0), token_count(-1), token_count("12")
    (12, 12, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MOST_TOKENS:
        return None
    return int(value) if value == int(value) else None


def cached_tokens(usage: Mapping[str, Any], prompt: int) -> int | None:
    """The tokens of a prompt that a server took from its cache; none if its ``usage`` does not say.

    Parameters
    ----------
    usage: the counts in its response.
    prompt: the tokens of the prompt, which are never fewer than the cached ones.

    >>> cached_tokens({"prompt_tokens_details": {"cached_tokens": 8}}, 10)
    8
    """
    details = usage.get("prompt_tokens_details")
    found = token_count(details.get("cached_tokens")) if isinstance(details, Mapping) else None
    if found is None:
        found = token_count(usage.get("prompt_cache_hit_tokens"))  # DeepSeek's name for it
    return None if found is None else min(found, prompt)


def split_reasoning(content: str) -> tuple[str, str]:
    r"""The reasoning and the answer in a text that has both.

    >>> split_reasoning("<think>6 · 7</think>\n42")
    ('6 · 7', '42')
    >>> split_reasoning("<think>6 · 7 is")          # cut off before the answer
    ('6 · 7 is', '')
    """
    if "think" not in content:
        return "", content
    # Without an end mark the model ran out of tokens while reasoning; without a start mark the chat template wrote it
    # into the prompt.
    before, ended, after = content.partition("</think>")
    reasoning = before.strip()
    if ended:
        return reasoning.removeprefix("<think>").strip(), after.lstrip()
    if reasoning.startswith("<think>"):
        return reasoning.removeprefix("<think>").strip(), ""
    return "", content


def _text(value: Any) -> str:
    """A text, or the joined texts of a list of parts."""
    if isinstance(value, list):
        return "".join(_text(part.get("text")) for part in value)
    if isinstance(value, str):
        return _valid_unicode(value)
    if value is None:
        return ""
    raise TypeError(f"{value!r} is not a text")


def _valid_unicode(text: str) -> str:
    """The text with surrogate pairs joined and lone surrogates replaced, so that it can be written as UTF-8.

    Servers that count in UTF-16 split characters outside the BMP, and send the halves in different stream events.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _token(token: Mapping[str, Any]) -> Token:
    others = token.get("top_logprobs") or ()
    return Token(
        text=_valid_unicode(str(token["token"])),
        logprob=_logprob(token, missing=math.nan),
        # JSON has no infinities: servers write the logarithm of probability 0 as null.
        top=tuple(_logprob(other, missing=-math.inf) for other in others),
        top_texts=tuple(_valid_unicode(str(other.get("token", ""))) for other in others),
    )


def _logprob(token: Mapping[str, Any], missing: float) -> float:
    value = token.get("logprob")
    return missing if value is None else float(value)
