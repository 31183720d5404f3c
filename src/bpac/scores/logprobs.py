"""Scores from log-probabilities: how likely the tokens of the draft were.

One average covers all tokens that the model generated, including reasoning. A draft seldom has reasoning; if it does,
the reasoning is part of what was generated, and servers differ too much in which tokens they list to treat it
separately. Tokens that a server does not list, such as the end-of-text token, are not counted.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from bpac.answer import Answer, Token
from bpac.arguments import whole
from bpac.errors import NoLogprobs
from bpac.scores.score import Needs

# Up to this much above 0 is a rounding error of half precision; larger values are not log-probabilities.
ROUNDING = 0.01


@dataclass(frozen=True, slots=True)
class MeanTokenProbability:
    """The score of the paper: one minus the mean probability of the draft's tokens.

    >>> draft = Answer("42", tokens=(Token("4", math.log(0.9)), Token("2", math.log(0.7))))
    >>> round(MeanTokenProbability()(draft), 6)
    0.2
    """

    @property
    def needs(self) -> Needs:
        """Log-probabilities."""
        return Needs(logprobs=True)

    def __call__(self, draft: Answer, samples: Sequence[Answer] = ()) -> float:
        """The uncertainty of the draft."""
        return _within(1.0 - _mean(list(map(math.exp, token_logprobs(draft)))))


@dataclass(frozen=True, slots=True)
class Perplexity:
    """One minus the inverse perplexity: ``1 − exp(mean log-probability)``.

    An improbable token has more weight here than in the mean of the probabilities; one with probability 0 makes it 1.

    >>> draft = Answer("42", tokens=(Token("4", math.log(0.9)), Token("2", math.log(0.4))))
    >>> round(Perplexity()(draft), 6)
    0.4
    """

    @property
    def needs(self) -> Needs:
        """Log-probabilities."""
        return Needs(logprobs=True)

    def __call__(self, draft: Answer, samples: Sequence[Answer] = ()) -> float:
        """The uncertainty of the draft."""
        return _within(1.0 - math.exp(_mean(token_logprobs(draft))))


@dataclass(frozen=True, slots=True)
class Entropy:
    """The mean entropy of the next-token distribution, divided by the largest possible entropy.

    The ``k`` listed tokens and *any other token* are ``k + 1`` outcomes, so the entropy is divided by ``log(k + 1)``.
    The probability of unlisted tokens is thus neither dropped nor spread over the listed tokens; the entropy among the
    unlisted tokens is unknown and left out.

    Parameters
    ----------
    top: number of most likely tokens to request at each position (default: 10; most servers list at most 20).

    >>> even = Token("a", math.log(0.5), top=(math.log(0.5), math.log(0.5)), top_texts=("a", "b"))
    >>> round(Entropy()(Answer("a", tokens=(even,))), 6)          # log 2 / log 3
    0.63093
    """

    top: int = 10

    def __post_init__(self) -> None:
        whole(self.top, "top", 1)

    @property
    def needs(self) -> Needs:
        """Log-probabilities of the tokens and of the most likely tokens at each position."""
        return Needs(logprobs=True, top_logprobs=self.top)

    def __call__(self, draft: Answer, samples: Sequence[Answer] = ()) -> float:
        """The uncertainty of the draft."""
        token_logprobs(draft)
        return _within(_mean([_entropy(token) for token in draft.tokens or ()]))


def token_logprobs(draft: Answer) -> list[float]:
    """The log-probability of every token, none above 0; ``NoLogprobs`` if any is missing or invalid.

    >>> token_logprobs(Answer("42"))
    Traceback (most recent call last):
    ...
    bpac.errors.NoLogprobs: the server gave no log-probabilities: request them with logprobs=true, or use another score
    """
    if draft.tokens is None:
        raise NoLogprobs("the server gave no log-probabilities: request them with logprobs=true, or use another score")
    if not draft.tokens:
        raise NoLogprobs("the draft has no tokens and therefore no log-probabilities")
    # Servers count a few special tokens that they do not list, and may or may not list reasoning. But if half of an
    # answer without reasoning is missing, the rest must not be scored as if it were the whole answer.
    if not draft.reasoning and 2 * len(draft.tokens) < draft.completion_tokens:
        raise NoLogprobs(
            f"the server gave log-probabilities of only {len(draft.tokens)} tokens out of {draft.completion_tokens}"
        )
    logprobs = [token.logprob for token in draft.tokens]
    # This fast path avoids a check of each token, because nearly all answers are valid. NaN is not equal to itself.
    if max(logprobs) <= 0.0 and (total := sum(logprobs)) == total:
        return logprobs
    return [usable(token.logprob, token.text) for token in draft.tokens]


def usable(logprob: float, text: str) -> float:
    """A log-probability, at most 0; ``NoLogprobs`` if the value is not a log-probability.

    >>> usable(1e-7, "a"), usable(-math.inf, "b")
    (0.0, -inf)
    """
    if logprob <= ROUNDING:
        return min(logprob, 0.0)
    raise NoLogprobs(f"token {text!r} has the invalid log-probability {logprob}: it must be at most 0")


def _entropy(token: Token) -> float:
    if not token.top:
        raise NoLogprobs(f"token {token.text!r} has no list of the most likely tokens: request it with top_logprobs")
    masses = [math.exp(usable(logprob, token.text)) for logprob in token.top]
    masses.append(max(0.0, 1.0 - sum(masses)))
    # A sum above 1 is a rounding error, too.
    total = sum(masses)
    shares = [mass / total for mass in masses if mass > 0.0]
    return -sum(share * math.log(share) for share in shares) / math.log(len(masses))


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _within(value: float) -> float:
    return min(1.0, max(0.0, value))
