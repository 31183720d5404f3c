"""What routing saved: tokens, and money where prices are known, net of drafts, audits and judges."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, NamedTuple

from bpac.betting.bounds.unseen import RATES, UnseenSum
from bpac.dashboard.savings import TokenSavings
from bpac.errors import SnapshotError
from bpac.gateway.config.routes import RouteSettings
from bpac.routing.decision import Decision
from bpac.routing.journal.entries import Entry, Resolved

# Keys of a note for tokens that became known only after the entry they belong to was written.
LATE_DRAFTS, LATE_EXPERTS, LATE_JUDGES = "late_draft_tokens", "late_expert_tokens", "late_judge_tokens"
# Each of the two bounds fails at some time with at most this probability.
ALPHA = 0.05


class Prices(NamedTuple):
    """Prices of a million generated tokens; none if not known. A route without a judge pays nothing for it."""

    draft: float | None
    expert: float | None
    judge: float | None

    @classmethod
    def of(cls, route: RouteSettings) -> "Prices":
        """The prices in the settings of a route."""
        return cls(route.draft.price, route.expert.price, route.judge.price if route.judge else 0.0)


@dataclass(frozen=True, slots=True)
class SavingsReport(TokenSavings):
    """What was spent and saved, with bounds on what was saved.

    Parameters
    ----------
    tokens_saved_at_least, tokens_saved_at_most: each holds with the confidence; no upper bound may be known.
    longest_answer_assumed: the upper bound holds if no answer of the expert has more tokens than this; none if nothing
        needs to be assumed, or if there is no upper bound.
    confidence: of each bound.
    money_saved, money_saved_at_least, money_saved_at_most: the same in money; none where prices are not known.
    """

    tokens_saved_at_least: float
    tokens_saved_at_most: float | None
    longest_answer_assumed: float | None
    confidence: float
    money_saved: float | None = None
    money_saved_at_least: float | None = None
    money_saved_at_most: float | None = None

    def to_json(self) -> dict[str, Any]:
        """The same as JSON values; without prices there is no key about money."""
        values = asdict(self)
        if self.money_saved is None:
            for name in ("money_saved", "money_saved_at_least", "money_saved_at_most"):
                del values[name]
        return values


@dataclass(slots=True)
class Savings:
    """Running sums over a journal and its notes.

    What was spent is known. What the expert would have generated where it was not asked is never seen, and is bounded
    from the rounds in which a coin said to ask it: see ``UnseenSum``. Where it was asked, its tokens would have been
    spent without the router, too. So what was saved is what the expert did not generate, less drafts and judges.

    Parameters
    ----------
    draft_tokens, expert_tokens, judge_tokens: generated, and so paid for.
    unseen: what the expert would have generated where a coin kept the draft.
    late: tokens that were not known yet when their entry was written, by the keys under which the next entry's note
        will have them. So a crash forgets only what was generated since the last entry.

    >>> from bpac.routing.journal.entries import Resolved
    >>> savings = Savings()
    >>> decision = Decision(1, 0.1, 0.3, propensity=0.5, least_propensity=0.5, call_expert=True, serve_draft=False)
    >>> savings.add(decision, {"draft_tokens": 10})
    >>> savings.add(Resolved(1, 0.0), {"expert_tokens": 400, "propensity": 0.5})
    >>> savings.report().always_tokens, savings.report().tokens_saved
    (800.0, 390.0)
    """

    draft_tokens: int = 0
    expert_tokens: int = 0
    judge_tokens: int = 0
    unseen: UnseenSum = field(default_factory=UnseenSum)
    late: dict[str, int] = field(default_factory=dict)

    def with_late_tokens(self, note: Mapping[str, Any]) -> Mapping[str, Any]:
        """The note of the next entry, with the late tokens added."""
        return {**note, **self.late} if self.late else note

    def add(self, entry: Entry, note: Mapping[str, Any]) -> None:
        """Add an entry of the journal and its note."""
        # The note has all that was late before it.
        self.late = {}
        self.draft_tokens += note.get("draft_tokens", 0) + note.get(LATE_DRAFTS, 0)
        self.judge_tokens += note.get("judge_tokens", 0) + note.get(LATE_JUDGES, 0)
        self.expert_tokens += note.get(LATE_EXPERTS, 0)
        if isinstance(entry, Decision):
            self.unseen.flip(entry.propensity, looks=entry.call_expert)
            return
        generated = note.get("expert_tokens", 0)
        # Without a count the value stays unknown: 0 for the lower bound, the longest answer for the upper bound.
        if generated > 0:
            self.expert_tokens += generated
            self.unseen.see(note["propensity"], generated)
        elif isinstance(entry, Resolved) and entry.refused:
            self.unseen.see(note["propensity"], 0)  # it generates nothing, with the router as without

    def drafted(self, tokens: int) -> None:
        """Count a draft that ended, or was cut off, after its decision."""
        self._came_late(LATE_DRAFTS, tokens)

    def judged(self, tokens: int) -> None:
        """Count a judge's grade that came too late to be an outcome; it was paid for all the same."""
        self._came_late(LATE_JUDGES, tokens)

    def answered(self, tokens: int) -> None:
        """Count an answer of the expert to a request whose draft had no score."""
        self._came_late(LATE_EXPERTS, tokens)

    def report(self, prices: Prices | None = None) -> SavingsReport:
        """What was spent and saved so far.

        Parameters
        ----------
        prices: none if money does not matter.
        """
        spared = (self.unseen.estimate, self.unseen.at_least(ALPHA), self.unseen.at_most(ALPHA))
        drafts = self.draft_tokens + self.late.get(LATE_DRAFTS, 0)
        judges = self.judge_tokens + self.late.get(LATE_JUDGES, 0)
        experts = self.expert_tokens + self.late.get(LATE_EXPERTS, 0)
        estimate, least, most = (value - drafts - judges for value in spared)
        report = SavingsReport(
            draft_tokens=drafts,
            expert_tokens=experts,
            judge_tokens=judges,
            always_tokens=experts + spared[0],
            tokens_saved=estimate,
            tokens_saved_at_least=least,
            tokens_saved_at_most=_finite(most),
            longest_answer_assumed=_finite(self.unseen.ceiling),
            confidence=1.0 - ALPHA,
        )
        if prices is None or prices.draft is None or prices.expert is None or prices.judge is None:
            return report
        spent = prices.draft * drafts + prices.judge * judges
        estimate, least, most = ((prices.expert * value - spent) / 1e6 for value in spared)
        return replace(report, money_saved=estimate, money_saved_at_least=least, money_saved_at_most=_finite(most))

    @classmethod
    def from_json(cls, state: Any) -> "Savings":
        """The sums in a snapshot, or ``SnapshotError`` if another version has written it."""
        if not isinstance(state, dict) or state.keys() != _names(cls):
            raise SnapshotError("the snapshot has other sums for the savings")
        inner = state["unseen"]
        if not isinstance(inner, dict) or inner.keys() != _names(UnseenSum):
            raise SnapshotError("the snapshot has other bounds for the savings")
        unseen = UnseenSum(**inner)
        if not len(unseen.below) == len(unseen.above) == len(RATES):
            raise SnapshotError("the snapshot has bounds for other rates for the savings")
        return cls(**{**state, "unseen": unseen})

    def _came_late(self, name: str, tokens: int) -> None:
        if tokens:
            self.late[name] = self.late.get(name, 0) + tokens


def _finite(bound: float) -> float | None:
    return bound if math.isfinite(bound) else None


def _names(kind: type) -> set[str]:
    return {one.name for one in fields(kind)}
