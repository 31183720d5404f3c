"""Scores made of scores: of the first tokens only, or with something to fall back on."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bpac.answer import Answer
from bpac.arguments import closed_fraction, keep, whole
from bpac.errors import NoScore
from bpac.scores.score import Needs, Score


@dataclass(frozen=True, slots=True)
class FirstTokens:
    """The score of a draft's first tokens, so that streaming can start before the draft is whole.

    The same number comes out for the whole draft as for any beginning of it with at least ``count`` tokens. A draft
    that is shorter is scored as it is.

    Parameters
    ----------
    score: a score from log-probabilities.
    count: how many tokens (k).
    """

    score: Score
    count: int

    def __post_init__(self) -> None:
        whole(self.count, "first_tokens", 1)

    @property
    def needs(self) -> Needs:
        """What the score needs."""
        return self.score.needs

    def __call__(self, draft: Answer, samples: Sequence[Answer] = ()) -> float:
        """The uncertainty of the beginning of the draft."""
        if draft.tokens and len(draft.tokens) > self.count:
            draft = replace(draft, tokens=draft.tokens[: self.count], completion_tokens=self.count)
        return self.score(draft, samples)


@dataclass(frozen=True, slots=True)
class Otherwise:
    """A score, and what counts for drafts that lack what it needs.

    Parameters
    ----------
    score: what is tried first.
    fallback: an uncertainty, or another score.

    >>> from bpac.scores.logprobs import Perplexity
    >>> Otherwise(Perplexity(), 1.0)(Answer("42"))
    1.0
    """

    score: Score
    fallback: float | Score

    def __post_init__(self) -> None:
        if not callable(self.fallback):
            keep(self, fallback=closed_fraction(self.fallback, "otherwise"))

    @property
    def needs(self) -> Needs:
        """What both need."""
        return self.score.needs if isinstance(self.fallback, float) else self.score.needs | self.fallback.needs

    def __call__(self, draft: Answer, samples: Sequence[Answer] = ()) -> float:
        """The uncertainty of the draft."""
        try:
            return self.score(draft, samples)
        except NoScore:
            return self.fallback if isinstance(self.fallback, float) else self.fallback(draft, samples)
