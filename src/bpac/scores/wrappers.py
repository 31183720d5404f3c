"""Scores that wrap another score: for the first tokens only, or with a fallback."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bpac.answer import Answer
from bpac.arguments import closed_fraction, keep, whole
from bpac.errors import NoScore
from bpac.scores.score import Needs, Score


@dataclass(frozen=True, slots=True)
class FirstTokens:
    """The score of a draft's first tokens, so that streaming can start before the draft is complete.

    The score is the same for the complete draft and for any beginning with at least ``count`` tokens. A shorter draft
    is scored completely.

    Parameters
    ----------
    score: a score from log-probabilities.
    count: number of tokens to score.
    """

    score: Score
    count: int

    def __post_init__(self) -> None:
        whole(self.count, "first_tokens", 1)

    @property
    def needs(self) -> Needs:
        """What the wrapped score needs."""
        return self.score.needs

    def __call__(self, draft: Answer, samples: Sequence[Answer] = ()) -> float:
        """The uncertainty of the first tokens of the draft."""
        if draft.tokens and len(draft.tokens) > self.count:
            draft = replace(draft, tokens=draft.tokens[: self.count], completion_tokens=self.count)
        return self.score(draft, samples)


@dataclass(frozen=True, slots=True)
class Otherwise:
    """A score with a fallback for drafts that it cannot be computed for.

    Parameters
    ----------
    score: the score that is tried first.
    fallback: a fixed uncertainty, or another score.

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
        """What both scores need."""
        return self.score.needs if isinstance(self.fallback, float) else self.score.needs | self.fallback.needs

    def __call__(self, draft: Answer, samples: Sequence[Answer] = ()) -> float:
        """The uncertainty of the draft."""
        try:
            return self.score(draft, samples)
        except NoScore:
            return self.fallback if isinstance(self.fallback, float) else self.fallback(draft, samples)
