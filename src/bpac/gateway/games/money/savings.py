"""What routing saved: running sums over a journal and its notes, net of drafts, audits and judges.

1. What was spent is known: all tokens that drafts, the expert and judges were sent and generated, retries included.
   They are in the notes beside the journal's entries, and so in the same transaction.
2. What the expert would have been sent and generated where it was not asked is never seen. It is bounded from the
   rounds in which a coin said to ask it: see ``UnseenSum``.
3. Where the expert was asked, its tokens would have been spent without the router, too. So what was saved is what the
   expert was spared, less drafts and judges. ``savings_report.py`` adds prices and bounds.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from bpac.answer import Answer
from bpac.betting.bounds.unseen import RATES, UnseenSum
from bpac.errors import SnapshotError
from bpac.gateway.games.money.draft_worth import RecentTokens
from bpac.gateway.games.money.followed import NONE_FOLLOWED, Followed
from bpac.gateway.games.money.savings_report import ALPHA, SavingsReport, Spared
from bpac.gateway.games.money.spending import Prices, Spent
from bpac.routing.decision import Decision
from bpac.routing.journal.entries import Entry, Resolved
from bpac.wire.usage import NOTHING, Meter, Usage

__all__ = ["ALPHA", "COUNTED", "Prices", "Savings", "SavingsReport", "expert_note"]

# Whose tokens are counted, as in the keys of notes: "draft_tokens", "late_draft_tokens".
DRAFT, EXPERT, JUDGE = "draft", "expert", "judge"
LATE, STAGE = "late_", "stage_"
# In the note of an outcome: the expert's tokens were counted before it. They are there only for the bounds.
COUNTED = "expert_counted"
# In the note of an outcome: the expert's tokens are not all in it, because other attempts were billed, too.
INCOMPLETE = "expert_incomplete"
# In the note of an outcome, where the server says it: how much of the prompt was cached.
CACHED = "expert_cached_tokens"


def expert_note(answer: Answer, meter: Meter) -> dict[str, Any]:
    """The note of an outcome on the expert's answer.

    Parameters
    ----------
    answer: the expert's answer.
    meter: has counted the call.
    """
    note: dict[str, Any] = {**meter.answered.to_note(EXPERT)}
    if answer.cached_tokens is not None:
        note[CACHED] = answer.cached_tokens
    if meter.lost is not NOTHING:
        note[INCOMPLETE] = True
    return note


@dataclass(slots=True)
class Savings:
    """Running sums over a journal and its notes.

    Parameters
    ----------
    drafts, experts, judges: tokens spent.
    unseen: what the expert would have generated where a coin kept the draft.
    prompts, fresh, cached: the same for the tokens of its prompts: all of them, those that were not in the server's
        cache, and those that were.
    prompts_unknown: answers of the expert whose prompt tokens are not known: the server did not count them, or an
        earlier version wrote the journal.
    recent: averages over the last rounds, for routes that minimise money.
    followed: later requests of episodes, where sessions are sticky.
    stages: the part of the drafts whose model is known, in a cascade: by the number of the model, from 1, as text.
    late: tokens that were not known yet when their entry was written, by whose they are. They will be in the next
        entry's note, so a crash forgets only what was spent since the last entry.
    late_followed: the same for later requests of episodes.

    >>> from bpac.routing.journal.entries import Resolved
    >>> savings = Savings()
    >>> decision = Decision(1, 0.1, 0.3, propensity=0.5, least_propensity=0.5, call_expert=True, serve_draft=False)
    >>> savings.add(decision, {"draft_tokens": 10})
    >>> savings.add(Resolved(1, 0.0), {"expert_tokens": 400, "propensity": 0.5})
    >>> savings.drafts.completion, savings.unseen.estimate
    (10, 400.0)
    """

    drafts: Usage = NOTHING
    experts: Usage = NOTHING
    judges: Usage = NOTHING
    unseen: UnseenSum = field(default_factory=UnseenSum)
    prompts: UnseenSum = field(default_factory=UnseenSum)
    fresh: UnseenSum = field(default_factory=UnseenSum)
    cached: UnseenSum = field(default_factory=UnseenSum)
    prompts_unknown: int = 0
    recent: RecentTokens = field(default_factory=RecentTokens)
    late: dict[str, Usage] = field(default_factory=dict)
    followed: Followed = NONE_FOLLOWED
    stages: dict[str, Usage] = field(default_factory=dict)
    late_followed: Followed = NONE_FOLLOWED

    def with_late_tokens(self, note: Mapping[str, Any]) -> Mapping[str, Any]:
        """The note of the next entry, with the late tokens added."""
        if not self.has_late:
            return note
        late = (usage.to_note(f"{LATE}{whose}") for whose, usage in self.late.items())
        return {**note, **{key: tokens for one in late for key, tokens in one.items()}, **self.late_followed.to_note()}

    @property
    def has_late(self) -> bool:
        """Whether anything was counted that is in no entry yet."""
        return bool(self.late) or self.late_followed is not NONE_FOLLOWED

    def add(self, entry: Entry, note: Mapping[str, Any]) -> None:
        """Add an entry of the journal and its note."""
        # The note has all that was late before it.
        self.late, self.late_followed = {}, NONE_FOLLOWED
        if (followed := Followed.from_note(note)) is not NONE_FOLLOWED:
            self.followed = self.followed.plus(followed)
        drafted = NOTHING
        noted = Usage.all_from_note(note)
        for prefix, usage in noted.items():
            whose = prefix.removeprefix(LATE)
            if whose == DRAFT:
                drafted = drafted.plus(usage)
            elif whose == JUDGE:
                self.judges = self.judges.plus(usage)
            elif whose == EXPERT:
                if prefix != EXPERT or COUNTED not in note:
                    self.experts = self.experts.plus(usage)
            elif whose.startswith(STAGE):
                stage = whose.removeprefix(STAGE)
                self.stages[stage] = self.stages.get(stage, NOTHING).plus(usage)
        self.drafts = self.drafts.plus(drafted)
        if isinstance(entry, Decision):
            for unseen in (self.unseen, self.prompts, self.fresh, self.cached):
                unseen.flip(entry.propensity, looks=entry.call_expert)
            self.recent.decided(entry, drafted)
        elif isinstance(entry, Resolved):
            self._see(entry, note, noted)

    def _see(self, entry: Resolved, note: Mapping[str, Any], noted: Mapping[str, Usage]) -> None:
        """Learn from an outcome what the expert is sent and generates; what is not known counts as 0."""
        answer, exact = noted.get(EXPERT, NOTHING), INCOMPLETE not in note
        if entry.refused and answer is NOTHING:  # it generates nothing, with the router as without
            for unseen in (self.unseen, self.prompts, self.fresh, self.cached):
                unseen.see(note["propensity"], 0)
            return
        if answer is not NOTHING:
            self.recent.resolved(answer, noted.get(JUDGE, NOTHING))
        if answer.completion > 0:
            self.unseen.see(note["propensity"], answer.completion, exact=exact)
        if answer.prompt and not answer.estimated:
            # A prompt of which the server does not say what was cached counts as cached: the cheaper kind.
            cached = answer.cached if CACHED in note else answer.prompt
            self.prompts.see(note["propensity"], answer.prompt, exact=exact)
            self.fresh.see(note["propensity"], answer.prompt - cached, exact=exact)
            self.cached.see(note["propensity"], cached, exact=exact)
        elif answer is not NOTHING:
            self.prompts_unknown += 1

    def drafted(self, usage: Usage) -> None:
        """Count a draft that ended, or was cut off, without a decision or after it."""
        self._came_late(DRAFT, usage)

    def answered(self, usage: Usage) -> None:
        """Count tokens of the expert that belong to no outcome."""
        self._came_late(EXPERT, usage)

    def outcome_unused(self, note: Mapping[str, Any]) -> None:
        """Count the tokens in the note of an outcome that is not recorded; they were paid for all the same."""
        self._came_late(JUDGE, Usage.from_note(note, JUDGE))
        self._came_late(DRAFT, Usage.from_note(note, DRAFT))  # of the other models that an audit of a cascade asked
        if COUNTED not in note:
            self._came_late(EXPERT, Usage.from_note(note, EXPERT))

    def follow(self, decision: Decision, answered_by: str, usage: Usage) -> None:
        """Count a later request of an episode.

        Parameters
        ----------
        decision: what it followed.
        answered_by: ``draft`` or ``expert``.
        usage: tokens of that model.
        """
        self.late_followed = self.late_followed.plus(Followed.of(decision, answered_by, usage))

    def spent(self) -> Spent:
        """All tokens spent so far."""
        late = self.late
        return Spent(
            self.drafts.plus(late.get(DRAFT, NOTHING)),
            self.experts.plus(late.get(EXPERT, NOTHING)),
            self.judges.plus(late.get(JUDGE, NOTHING)),
            {int(stage): usage for stage, usage in self.stages.items()},
        )

    def report(self, prices: Prices | None = None) -> SavingsReport:
        """What was spent and saved so far.

        Parameters
        ----------
        prices: none if money does not matter.
        """
        spared = Spared(self.unseen, self.prompts, self.fresh, self.cached)
        followed = self.followed.plus(self.late_followed)
        return SavingsReport.of(self.spent(), spared, self.prompts_unknown, prices, followed)

    @classmethod
    def from_json(cls, state: Any) -> "Savings":
        """The sums in a snapshot, or ``SnapshotError`` if another version has written it."""
        if not isinstance(state, dict) or state.keys() | _LATER != _names(cls):
            raise SnapshotError("the snapshot has other sums for the savings")
        values = dict(state)
        values["stages"] = {stage: Usage(*usage) for stage, usage in state.get("stages", {}).items()}
        for name in ("followed", "late_followed"):
            if name not in state:
                continue
            found = Followed.from_state(state[name])
            values[name] = found if found.requests else NONE_FOLLOWED
        for name in ("unseen", "prompts", "fresh", "cached"):
            values[name] = _unseen_sum(state[name])
        for name in ("drafts", "experts", "judges"):
            values[name] = Usage(*state[name])
        if not isinstance(state["recent"], dict) or state["recent"].keys() != _names(RecentTokens):
            raise SnapshotError("the snapshot has other averages for the savings")
        values["recent"] = RecentTokens(**state["recent"])
        values["late"] = {whose: Usage(*usage) for whose, usage in state["late"].items()}
        return cls(**values)

    def _came_late(self, whose: str, usage: Usage) -> None:
        if usage != NOTHING:
            self.late[whose] = self.late.get(whose, NOTHING).plus(usage)


# What snapshots of earlier versions do not have. The model of a cascade's drafts before such a snapshot is not known.
_LATER = {"followed", "late_followed", "stages"}


def _unseen_sum(state: Any) -> UnseenSum:
    if not isinstance(state, dict) or state.keys() != _names(UnseenSum):
        raise SnapshotError("the snapshot has other bounds for the savings")
    unseen = UnseenSum(**state)
    if not len(unseen.below) == len(unseen.above) == len(RATES):
        raise SnapshotError("the snapshot has bounds for other rates for the savings")
    return unseen


def _names(kind: type) -> set[str]:
    return {one.name for one in fields(kind)}
