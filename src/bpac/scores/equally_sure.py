"""The score of a route that compares two models as a whole: every draft is as sure as any other."""

from collections.abc import Sequence
from dataclasses import dataclass

from bpac.answer import Answer
from bpac.scores.score import Needs


@dataclass(frozen=True, slots=True)
class EquallySure:
    """An uncertainty of 0 for every draft, so that either no draft is accepted or all are.

    >>> EquallySure()(Answer("42"))
    0.0
    """

    @property
    def needs(self) -> Needs:
        """Nothing."""
        return Needs()

    def __call__(self, draft: Answer, samples: Sequence[Answer] = ()) -> float:
        """The uncertainty, whatever the draft is."""
        return 0.0
