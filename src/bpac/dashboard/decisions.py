"""One decision as JSON values and in words: what was decided and why, who answered, and the outcome."""

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
    decision: the decision of the router.
    outcome: the latest outcome in the journal (default: None, no outcome).
    owed: whether it still waits for an outcome (default: false).
    note, outcome_note: what the journal notes beside the two, such as the time and the number of tokens.
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
            # The journal has no entry for an audit that was given up because too many were waiting.
            return "open" if self.owed else "forfeited"
        if self.outcome.refused:
            return "refused"
        return "forfeited" if self.outcome.loss is None else "resolved"

    @property
    def cause(self) -> str:
        """Why it could not be graded; empty if it was graded or may still be."""
        if self.state != "forfeited":
            return ""
        return CROWDED_OUT if self.outcome is None else self.outcome.cause

    @property
    def answered_by(self) -> str:
        """Which model's answer the caller received."""
        return "draft" if self.decision.serve_draft or self._draft_instead else "expert"

    @property
    def stage(self) -> int | None:
        """Which model of a cascade answered, from 1; none for a pair."""
        part = self.decision.cascade
        if part is None:
            return None
        made = [stage for stage, answer in enumerate(part.answers, start=1) if answer]
        if self.answered_by == "expert" or not made:
            return len(part.answers) + 1
        return part.stage if part.stage in made else made[-1]

    def document(self, name: str, game: int, route: str, segment: str, unit: str = "request") -> dict[str, Any]:
        """The decision and its outcome as JSON values.

        Parameters
        ----------
        name: the identifier of the decision.
        game, route, segment: the game in which it was made.
        unit: what a round is: a ``request`` or an ``episode`` (default: a request).
        """
        decision = self.decision
        return {
            "id": name,
            "game": game,
            "route": route,
            "segment": segment,
            "unit": unit,
            "step": decision.step,
            "at": self.note.get("at", 0.0),
            "uncertainty": decision.uncertainty,
            "threshold": decision.threshold,
            "propensity": decision.propensity,
            "call_expert": decision.call_expert,
            "answered_by": self.answered_by,
            **({"stage": self.stage} if decision.cascade is not None else {}),
            "epoch": decision.epoch,
            "state": self.state,
            "loss": self.outcome.loss if self.outcome else None,
            "cause": self.cause,
            "why": f"{self._decision_text(unit)}. {self._outcome_text(unit)}.",
            "draft_tokens": self.note.get("draft_tokens"),
            "expert_tokens": self.outcome_note.get("expert_tokens"),
            "judge_tokens": self.outcome_note.get("judge_tokens"),
            "texts": None,
        }

    def _decision_text(self, unit: str) -> str:
        decision = self.decision
        uncertainty, threshold = apart(decision.uncertainty, decision.threshold)
        learned = decision.features and decision.uncertainty != decision.uncertainties[0]
        name = "Learned score" if learned else "Uncertainty"
        if decision.threshold == 0.0:
            return f"{name} {uncertainty}; the threshold was 0, so the expert was called, as for every {unit}"
        if decision.uncertainty >= decision.threshold:
            return f"{name} {uncertainty} is not below the threshold {threshold}, so the expert was called"
        below = f"{name} {uncertainty} is below the threshold {threshold}"
        audit = f"a random audit (probability {percent(decision.propensity)})"
        if not decision.call_expert:
            return f"{below}, so the draft was kept; it was not selected for {audit}"
        served = "; the caller received the draft" if decision.serve_draft else ""
        return f"{below}, but it was selected for {audit}, so the expert was called to check the draft{served}"

    def _outcome_text(self, unit: str) -> str:
        if self.state == "kept":
            return "The draft was not graded, so its loss is unknown"
        if self.state == "open":
            return "The draft is not graded yet and counts as a loss of 1 until it is"
        if self.state == "refused":
            caller = "; the caller received the draft, which was accepted" if self._draft_instead else ""
            return f"The expert refused to answer, so the {unit} counts neither for nor against any threshold{caller}"
        if self.outcome is None or self.outcome.loss is None:
            instead = "; the caller received the draft, which the certificate counts in full"
            return (
                f"The draft could not be graded ({self.cause}) and counts as a loss of 1"
                f"{instead if self._draft_instead else ''}"
            )
        return f"The loss of the draft compared with the expert's answer is {self.outcome.loss:.4g}"

    @property
    def _draft_instead(self) -> bool:
        return self.outcome is not None and self.outcome.draft_served
