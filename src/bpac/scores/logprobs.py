"""Scores from log-probabilities: how likely the draft's own tokens were.

Every token the draft's model generated counts, in one average, whatever it thought included. A draft seldom
thinks; where it does, the thought is part of what was generated, and servers differ too much in what they
list apart to count it otherwise. Tokens a server does not list (its end mark, say) are not counted.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from bpac.answer import Answer, Token
from bpac.arguments import whole
from bpac.errors import NoLogprobs
from bpac.scores.score import Needs

# A logarithm this far above 0 is a rounding error of half precision. Beyond, it is no log-probability.
ROUNDING = 0.01


@dataclass(frozen=True, slots=True)
class MeanTokenProbability:
    """The paper's score: one minus the mean probability of the draft's tokens.

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

    One improbable token weighs more here than in the mean of the probabilities; an impossible one makes it 1.

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
    """The mean entropy of the choice of a token, as a share of the largest possible.

    The ``k`` listed tokens and *any other token* are ``k + 1`` outcomes, so the entropy is divided by
    ``log(k + 1)``. The mass beyond the list is thus neither dropped nor spread over the listed tokens; the
    entropy within it cannot be seen, and is left out.

    Parameters
    ----------
    top: how many tokens to ask for in each place (most servers list at most 20).

    >>> even = Token("a", math.log(0.5), top=(math.log(0.5), math.log(0.5)), top_texts=("a", "b"))
    >>> round(Entropy()(Answer("a", tokens=(even,))), 6)          # log 2 / log 3
    0.63093
    """

    top: int = 10

    def __post_init__(self) -> None:
        whole(self.top, "top", 1)

    @property
    def needs(self) -> Needs:
        """Log-probabilities, also of the likeliest tokens."""
        return Needs(logprobs=True, top_logprobs=self.top)

    def __call__(self, draft: Answer, samples: Sequence[Answer] = ()) -> float:
        """The uncertainty of the draft."""
        token_logprobs(draft)
        return _within(_mean([_entropy(token) for token in draft.tokens or ()]))


def token_logprobs(draft: Answer) -> list[float]:
    """The log-probability of every token, all of them usable and none above 0, or ``NoLogprobs``.

    >>> token_logprobs(Answer("42"))
    Traceback (most recent call last):
    ...
    bpac.errors.NoLogprobs: the server gave no log-probabilities: ask with logprobs=true, or choose another score
    """
    if draft.tokens is None:
        raise NoLogprobs("the server gave no log-probabilities: ask with logprobs=true, or choose another score")
    if not draft.tokens:
        raise NoLogprobs("the draft has no tokens, so no log-probabilities: there is nothing to score")
    # An end mark or a few marks of the template are counted but seldom listed; thoughts may be listed or not.
    # Half of a plain answer missing is another matter: the rest would pass for the whole.
    if not draft.reasoning and 2 * len(draft.tokens) < draft.completion_tokens:
        raise NoLogprobs(
            f"log-probabilities of {len(draft.tokens)} tokens out of {draft.completion_tokens}: too few to score"
        )
    logprobs = [token.logprob for token in draft.tokens]
    # Nearly always they are as they should be, and then they are not looked at one by one. A NaN differs from itself.
    if max(logprobs) <= 0.0 and (total := sum(logprobs)) == total:
        return logprobs
    return [usable(token.logprob, token.text) for token in draft.tokens]


def usable(logprob: float, text: str) -> float:
    """A log-probability of at most 0, or ``NoLogprobs`` if it is none.

    >>> usable(1e-7, "a"), usable(-math.inf, "b")
    (0.0, -inf)
    """
    if logprob <= ROUNDING:
        return min(logprob, 0.0)
    raise NoLogprobs(f"token {text!r} has log-probability {logprob}, which is none: it must be at most 0")


def _entropy(token: Token) -> float:
    if not token.top:
        raise NoLogprobs(f"token {token.text!r} came without the likeliest tokens: ask with top_logprobs")
    masses = [math.exp(usable(logprob, token.text)) for logprob in token.top]
    masses.append(max(0.0, 1.0 - sum(masses)))
    # More than 1 in all is rounding too.
    total = sum(masses)
    shares = [mass / total for mass in masses if mass > 0.0]
    return -sum(share * math.log(share) for share in shares) / math.log(len(masses))


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _within(value: float) -> float:
    return min(1.0, max(0.0, value))
