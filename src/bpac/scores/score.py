"""The interface of a score, which measures the uncertainty of a draft as a number in [0, 1]."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from bpac.answer import Answer


@dataclass(frozen=True, slots=True)
class Needs:
    """What must be requested from the draft's model to compute a score.

    Parameters
    ----------
    logprobs: whether the log-probability of every token is needed.
    top_logprobs: number of most likely tokens that are needed at each position.
    samples: number of further answers to the same question that are needed.
    suffix: text that must be added to the question.
    question: what is asked in a request of its own, after the draft, if the draft has no room for what the suffix asks
        for: a tool call, or an answer in JSON.
    """

    logprobs: bool = False
    top_logprobs: int = 0
    samples: int = 0
    suffix: str = ""
    question: str = ""

    def request(self) -> dict[str, Any]:
        """The fields of a chat completion request for the log-probabilities.

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
            question=self.question or other.question,
        )


class Score(Protocol):
    """A score: a callable that returns the uncertainty of a draft in [0, 1]; larger is less certain."""

    @property
    def needs(self) -> Needs:
        """What must be requested from the draft's model."""

    def __call__(self, draft: Answer, samples: Sequence[Answer] = ()) -> float:
        """The uncertainty of the draft; raises ``NoScore`` if it cannot be computed.

        Parameters
        ----------
        draft: the draft.
        samples: further answers to the same question, if the score needs them.
        """
