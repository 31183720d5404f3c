"""What later requests of episodes cost: their tokens, and what the expert was spared by them.

They are no rounds, so that the bounds on what was saved are about the first requests of episodes. Here the tokens of
later requests are counted, and what the expert would have generated for those that the draft's model answered is
estimated: an episode that a coin with the probability π gave to the expert stands for (1 − π)/π others.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from bpac.routing.decision import Decision
from bpac.wire.usage import NOTHING, Usage

# In notes beside entries of the journal.
_PREFIX = "followed"


@dataclass(frozen=True, slots=True)
class Followed:
    """Requests that followed the decision of an episode.

    Parameters
    ----------
    by_draft, by_expert: how many the draft's model and the expert answered.
    drafts, experts: tokens of their answers.
    spared: estimated tokens that the expert would have generated for those that the draft's model answered.

    >>> decision = Decision(1, 0.1, 0.3, propensity=0.25, least_propensity=0.25, call_expert=True, serve_draft=False)
    >>> Followed.of(decision, "expert", Usage(completion=100)).spared
    300.0
    """

    by_draft: int = 0
    by_expert: int = 0
    drafts: Usage = NOTHING
    experts: Usage = NOTHING
    spared: float = 0.0

    @classmethod
    def of(cls, decision: Decision, answered_by: str, usage: Usage) -> "Followed":
        """One request.

        Parameters
        ----------
        decision: what it followed.
        answered_by: ``draft`` or ``expert``.
        usage: tokens of that model.
        """
        if answered_by == "draft":
            return cls(by_draft=1, drafts=usage)
        # Where the draft's model was to answer and failed, the expert's tokens say nothing about other episodes.
        chosen = not decision.serve_draft
        odds = (1.0 - decision.propensity) / decision.propensity if chosen else 0.0
        return cls(by_expert=1, experts=usage, spared=odds * usage.completion)

    def plus(self, other: "Followed") -> "Followed":
        """The sum of both."""
        return Followed(
            self.by_draft + other.by_draft,
            self.by_expert + other.by_expert,
            self.drafts.plus(other.drafts),
            self.experts.plus(other.experts),
            self.spared + other.spared,
        )

    @property
    def requests(self) -> int:
        """How many requests there were."""
        return self.by_draft + self.by_expert

    def to_note(self) -> dict[str, Any]:
        """The same for the note of the next entry; empty if there were none."""
        if not self.requests:
            return {}
        counts = {f"{_PREFIX}_by_draft": self.by_draft, f"{_PREFIX}_by_expert": self.by_expert}
        tokens = self.drafts.to_note(f"{_PREFIX}_draft") | self.experts.to_note(f"{_PREFIX}_expert")
        return counts | tokens | {f"{_PREFIX}_spared": round(self.spared, 3)}

    @classmethod
    def from_note(cls, note: Mapping[str, Any]) -> "Followed":
        """What ``to_note`` wrote."""
        if f"{_PREFIX}_by_draft" not in note:
            return NONE_FOLLOWED
        drafts, experts = (Usage.from_note(note, f"{_PREFIX}_{whose}") for whose in ("draft", "expert"))
        by_draft, by_expert = note[f"{_PREFIX}_by_draft"], note[f"{_PREFIX}_by_expert"]
        return cls(by_draft, by_expert, drafts, experts, note.get(f"{_PREFIX}_spared", 0.0))

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> "Followed":
        """What a snapshot keeps of it."""
        return cls(**{**state, "drafts": Usage(*state["drafts"]), "experts": Usage(*state["experts"])})

    def to_json(self) -> dict[str, Any]:
        """The same as JSON values."""
        usage = {"draft": self.drafts.to_json(), "expert": self.experts.to_json()}
        counts = {name: value for name, value in asdict(self).items() if name in ("by_draft", "by_expert")}
        return {"requests": self.requests, **counts, **usage, "expert_tokens_spared": self.spared}


NONE_FOLLOWED = Followed()
