"""What routing saved: tokens, and money where prices are known, net of drafts, audits and judges."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

from bpac.betting.bounds.unseen import RATES, UnseenSum
from bpac.errors import SnapshotError
from bpac.gateway.config.routes import RouteSettings
from bpac.routing.decision import Decision
from bpac.routing.journal.entries import Entry, Resolved

# What came too late for the note of its own entry.
LATE_DRAFTS, LATE_EXPERTS, LATE_JUDGES = "late_draft_tokens", "late_expert_tokens", "late_judge_tokens"
# Each of the two bounds fails at some time with at most this probability.
ALPHA = 0.05


class Prices(NamedTuple):
    """Prices of a million generated tokens; none if not known. A route without a judge pays none."""

    draft: float | None
    expert: float | None
    judge: float | None

    @classmethod
    def of(cls, route: RouteSettings) -> "Prices":
        """The prices that a route was configured with."""
        return cls(route.draft.price, route.expert.price, route.judge.price if route.judge else 0.0)


@dataclass(slots=True)
class Savings:
    """Running sums over a journal and its notes.

    What was spent is known. What the expert would have generated where it was not asked is never seen, and bounded from
    the rounds in which a coin said to ask it: see ``UnseenSum``. Where it was asked it was paid for with the router as
    without, whatever it generated; so what was saved is what it was spared, less drafts and judges.

    Parameters
    ----------
    draft_tokens, expert_tokens, judge_tokens: generated, and so paid for.
    unseen: what the expert would have generated where a coin spared it.
    late: tokens that were not known yet when their entry was written, by the names under which the next entry will
        note them. So a crash forgets only what was generated since the last entry.

    >>> from bpac.routing.journal.entries import Resolved
    >>> savings = Savings()
    >>> decision = Decision(1, 0.1, 0.3, propensity=0.5, least_propensity=0.5, call_expert=True, serve_draft=False)
    >>> savings.add(decision, {"draft_tokens": 10})
    >>> savings.add(Resolved(1, 0.0), {"expert_tokens": 400, "propensity": 0.5})
    >>> savings.report()["always_tokens"], savings.report()["tokens_saved"]
    (800.0, 390.0)
    """

    draft_tokens: int = 0
    expert_tokens: int = 0
    judge_tokens: int = 0
    unseen: UnseenSum = field(default_factory=UnseenSum)
    late: dict[str, int] = field(default_factory=dict)

    def noted(self, note: Mapping[str, Any]) -> Mapping[str, Any]:
        """The note of an entry that is about to be written, with what came late."""
        return {**note, **self.late} if self.late else note

    def add(self, entry: Entry, note: Mapping[str, Any]) -> None:
        """Take in an entry of the journal and its note."""
        # The note has all that was late before it.
        self.late = {}
        self.draft_tokens += note.get("draft_tokens", 0) + note.get(LATE_DRAFTS, 0)
        self.judge_tokens += note.get("judge_tokens", 0) + note.get(LATE_JUDGES, 0)
        self.expert_tokens += note.get(LATE_EXPERTS, 0)
        if isinstance(entry, Decision):
            self.unseen.flip(entry.propensity, looks=entry.call_expert)
            return
        generated = note.get("expert_tokens", 0)
        # Without a count the value stays unknown: nothing from below, the most there can be from above.
        if generated > 0:
            self.expert_tokens += generated
            self.unseen.see(note["propensity"], generated)
        elif isinstance(entry, Resolved) and entry.refused:
            self.unseen.see(note["propensity"], 0)  # it generates nothing, with the router as without

    def drafted(self, tokens: int) -> None:
        """A draft came to its end, or was cut off, after its decision."""
        self._came_late(LATE_DRAFTS, tokens)

    def judged(self, tokens: int) -> None:
        """A judge's mark came too late to be an outcome; it was paid for all the same."""
        self._came_late(LATE_JUDGES, tokens)

    def answered(self, tokens: int) -> None:
        """An expert's answer, to a caller whose draft had no score, came to its end after its decision."""
        self._came_late(LATE_EXPERTS, tokens)

    def report(self, prices: Prices | None = None) -> dict[str, Any]:
        """What was saved, as JSON values.

        Parameters
        ----------
        prices: none if money does not matter.
        """
        spared = (self.unseen.estimate, self.unseen.at_least(ALPHA), self.unseen.at_most(ALPHA))
        drafts = self.draft_tokens + self.late.get(LATE_DRAFTS, 0)
        judges = self.judge_tokens + self.late.get(LATE_JUDGES, 0)
        experts = self.expert_tokens + self.late.get(LATE_EXPERTS, 0)
        assumed = self.unseen.ceiling
        report = {
            "draft_tokens": drafts,
            "expert_tokens": experts,
            "judge_tokens": judges,
            "always_tokens": experts + spared[0],
            **_named("tokens_saved", [value - drafts - judges for value in spared]),
            "longest_answer_assumed": assumed if math.isfinite(assumed) else None,
            "confidence": 1.0 - ALPHA,
        }
        if prices and prices.draft is not None and prices.expert is not None and prices.judge is not None:
            spent = prices.draft * drafts + prices.judge * judges
            report |= _named("money_saved", [(prices.expert * value - spent) / 1e6 for value in spared])
        return report

    @classmethod
    def from_json(cls, state: Any) -> "Savings":
        """Those of a snapshot, or ``SnapshotError`` if other sums were kept when it was made."""
        if not isinstance(state, dict) or state.keys() != _names(cls):
            raise SnapshotError("the sums of the savings are others now")
        inner = state["unseen"]
        if not isinstance(inner, dict) or inner.keys() != _names(UnseenSum):
            raise SnapshotError("the bounds of the savings are others now")
        unseen = UnseenSum(**inner)
        if not len(unseen.below) == len(unseen.above) == len(RATES):
            raise SnapshotError("the bounds of the savings have other rates now")
        return cls(**{**state, "unseen": unseen})

    def _came_late(self, name: str, tokens: int) -> None:
        if tokens:
            self.late[name] = self.late.get(name, 0) + tokens


def _named(name: str, values: list[float]) -> dict[str, float | None]:
    estimate, least, most = values
    return {name: estimate, f"{name}_at_least": least, f"{name}_at_most": most if math.isfinite(most) else None}


def _names(kind: type) -> set[str]:
    return {one.name for one in fields(kind)}
