"""One decision, as JSON values and in words: what was decided, with which chance, who answered and what came of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bpac.dashboard.words import apart, percent
from bpac.routing.decision import Decision
from bpac.routing.journal.entries import Resolved
from bpac.routing.route import CROWDED_OUT


@dataclass(frozen=True, slots=True)
class DecisionView:
    """A decision with its outcome, as the dashboard shows it.

    Parameters
    ----------
    decision: what was decided.
    outcome: the latest that was said of what came of it; none if nothing was.
    owed: whether its outcome is still waited for.
    note, outcome_note: what the journal has beside the two: when, how many tokens, why there was no score.
    """

    decision: Decision
    outcome: Resolved | None = None
    owed: bool = False
    note: Mapping[str, Any] = field(default_factory=dict)
    outcome_note: Mapping[str, Any] = field(default_factory=dict)

    @property
    def state(self) -> str:
        """``kept``, ``open``, ``resolved``, ``refused`` or ``forfeited``."""
        if not self.decision.call_expert:
            return "kept"
        if self.outcome is None:
            # A round that is neither resolved nor owed was given up to make room, which is not written down.
            return "open" if self.owed else "forfeited"
        if self.outcome.refused:
            return "refused"
        return "forfeited" if self.outcome.loss is None else "resolved"

    @property
    def cause(self) -> str:
        """Why its outcome was given up; empty if it was not."""
        if self.state != "forfeited":
            return ""
        return CROWDED_OUT if self.outcome is None else self.outcome.cause

    @property
    def answered_by(self) -> str:
        """Whose answer the caller got."""
        return "draft" if self.decision.serve_draft or self._draft_instead else "expert"

    def document(self, name: str, game: int, route: str, segment: str) -> dict[str, Any]:
        """All of it as JSON values.

        Parameters
        ----------
        name: of the decision.
        game, route, segment: where it was made.
        """
        decision = self.decision
        return {
            "id": name,
            "game": game,
            "route": route,
            "segment": segment,
            "step": decision.step,
            "at": self.note.get("at", 0.0),
            "uncertainty": decision.uncertainty,
            "threshold": decision.threshold,
            "propensity": decision.propensity,
            "call_expert": decision.call_expert,
            "answered_by": self.answered_by,
            "epoch": decision.epoch,
            "state": self.state,
            "loss": self.outcome.loss if self.outcome else None,
            "cause": self.cause,
            "why": f"{self._decided()}. {self._came_of_it()}.",
            "draft_tokens": self.note.get("draft_tokens"),
            "expert_tokens": self.outcome_note.get("expert_tokens"),
            "judge_tokens": self.outcome_note.get("judge_tokens"),
            "texts": None,
        }

    def _decided(self) -> str:
        decision = self.decision
        uncertainty, threshold = apart(decision.uncertainty, decision.threshold)
        if decision.threshold == 0.0:
            return f"Uncertainty {uncertainty}: no threshold was open, so the expert was called, as for every query"
        if decision.uncertainty >= decision.threshold:
            return f"Uncertainty {uncertainty} is not below the threshold {threshold}, so the expert was called"
        below, chance = f"Uncertainty {uncertainty} is below the threshold {threshold}", percent(decision.propensity)
        if not decision.call_expert:
            return f"{below}, so the draft was kept; the coin ({chance}) did not ask for a check"
        behind = ", behind the draft that was served" if decision.serve_draft else ""
        return f"{below}; the coin ({chance}) called the expert to check the draft{behind}"

    def _came_of_it(self) -> str:
        if self.state == "kept":
            return "Its loss is never seen"
        if self.state == "open":
            return "Its outcome is still to come, and counts as a loss of 1 until it does"
        if self.state == "refused":
            caller = "; the caller got the draft, which was accepted" if self._draft_instead else ""
            return f"The expert refused to answer, so the round pays nothing on average at any threshold{caller}"
        if self.outcome is None or self.outcome.loss is None:
            instead = "; the caller got the draft, which the certificate counts in full" if self._draft_instead else ""
            return f"Its outcome was given up ({self.cause}), which counts as a loss of 1{instead}"
        return f"The draft's loss against the expert is {self.outcome.loss:.4g}"

    @property
    def _draft_instead(self) -> bool:
        return self.outcome is not None and self.outcome.draft_served
