"""Scores: how unsure a draft is, as a number in [0, 1]; larger is less sure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from bpac.answer import Answer


@dataclass(frozen=True, slots=True)
class Needs:
    """What must be asked of the draft's model so that a score can be computed.

    Parameters
    ----------
    logprobs: whether the log-probability of every token is needed.
    top_logprobs: how many of the likeliest tokens are needed in each place.
    samples: how many further answers to the same question are needed.
    suffix: what must be added to the question.
    """

    logprobs: bool = False
    top_logprobs: int = 0
    samples: int = 0
    suffix: str = ""

    def request(self) -> dict[str, Any]:
        """The fields of a chat completion request that ask for the log-probabilities.

        >>> Needs(logprobs=True, top_logprobs=5).request()
        {'logprobs': True, 'top_logprobs': 5}
        """
        if not self.logprobs:
            return {}
        return {"logprobs": True} | ({"top_logprobs": self.top_logprobs} if self.top_logprobs else {})

    def __or__(self, other: "Needs") -> "Needs":
        return Needs(
            logprobs=self.logprobs or other.logprobs,
            top_logprobs=max(self.top_logprobs, other.top_logprobs),
            samples=max(self.samples, other.samples),
            suffix=self.suffix or other.suffix,
        )


class Score(Protocol):
    """A way to tell how unsure a draft is."""

    @property
    def needs(self) -> Needs:
        """What must be asked of the draft's model."""

    def __call__(self, draft: Answer, samples: Sequence[Answer] = ()) -> float:
        """The uncertainty of the draft, or ``NoScore`` if it lacks what the score needs."""
