"""From the inbox to the journal: which entries an event leads to. Nothing here waits or sends.

1. Events are taken in the order in which Redis has them, so every state on the way is one that a single gateway could
   have had. A threshold that is published is that of such a state.
2. An event may come too late: an outcome of a round that has one, a withdrawal of a ticket of an epoch that is over.
   Then it leads to no entry, as in a single gateway.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from msgspec.json import decode

from bpac.routing.bettors import BudgetBettor
from bpac.routing.cascade.bettor import CascadeBettor
from bpac.routing.cascade.fitting import fit_rule
from bpac.routing.cascade.policy import Cascade
from bpac.routing.cascade.rounds import outcomes_from_json
from bpac.routing.cascade.rules import JoiningRule
from bpac.routing.coins import block_of_draws
from bpac.routing.decision import Decision
from bpac.routing.journal.chain import next_head
from bpac.routing.journal.entries import (
    Committed,
    Entry,
    Fitted,
    Learned,
    Opened,
    Overdue,
    Resolved,
    Started,
    Stopped,
    Withdrawn,
)
from bpac.routing.journal.rebuild import follow
from bpac.routing.journal.snapshot import take_snapshot
from bpac.routing.learning.model import FrozenModel, OwnScore
from bpac.routing.recorded_terms import DecisionRules, decide_on_terms
from bpac.routing.route import Route
from bpac.stores.encoding import encode
from bpac.stores.redis.messages import read_draft, read_terms
from bpac.stores.sqlite.writing.statements import entry_text
from bpac.stores.store import CoinKey

# How far the room of a budget is computed ahead, in audits and in steps, and what is added to a bound for rounding.
MOST_AUDITS, FARTHEST, MARGIN = 64, 5000, 1e-9
# Why audits of a replica that is gone get no outcome.
RESTART = "restart"
# The note of a decision says which replica made it.
BY = "by"


class EventsMissing(Exception):
    """An event does not follow what was folded: another folder has folded those before it, or they were lost."""


class FoldedState(Protocol):
    """What follows from a journal."""

    @property
    def route(self) -> Route:
        """The state of the game."""

    @property
    def owners(self) -> "Owners":
        """Who made the decisions whose outcome is open."""

    def apply(self, entry: Entry, note: Mapping[str, Any]) -> None:
        """Apply the next entry, as it was applied when it was written."""

    def snapshot(self) -> dict[str, Any]:
        """All of it as JSON values."""


class Owners:
    """Which replica waits for the outcome of which round.

    Parameters
    ----------
    by_step: replicas by step.
    """

    def __init__(self, by_step: Mapping[int, str]) -> None:
        self.by_step = dict(by_step)

    def apply(self, entry: Entry, note: Mapping[str, Any]) -> None:
        """Follow an entry."""
        if isinstance(entry, Decision) and entry.call_expert:
            self.by_step[entry.step] = str(note.get(BY, ""))
        elif isinstance(entry, Resolved):
            self.by_step.pop(entry.step, None)

    def state(self) -> list[tuple[int, str]]:
        """The same as JSON values."""
        return list(self.by_step.items())


class PlainState:
    """The state of a game and nothing else.

    Parameters
    ----------
    route: the state.
    owners: steps and replicas of open rounds.
    """

    def __init__(self, route: Route, owners: Mapping[int, str] | None = None) -> None:
        self.route = route
        self.owners = Owners(owners or {})

    def apply(self, entry: Entry, note: Mapping[str, Any]) -> None:
        """Apply the next entry."""
        follow(self.route, [entry])
        self.owners.apply(entry, note)

    def snapshot(self) -> dict[str, Any]:
        """All of it as JSON values."""
        return {"router": take_snapshot(self.route), "owners": self.owners.state()}


class PublishedTerms(NamedTuple):
    """What replicas need to know, as texts.

    Parameters
    ----------
    key: changes with everything that a decision depends on.
    terms: threshold, rate, score in use, entries seen, number of scores.
    models_version, models: the learned scores, or the rules of a cascade that have joined.
    """

    key: str
    terms: str
    models_version: str
    models: str


class Fold:
    """The entries of a journal that are made but not published.

    Parameters
    ----------
    state: what follows from the entries so far; it is changed.
    rules: by which the game decides.
    head: of the hash chain after the entries so far.
    generation: of the tickets that the entries so far are about.
    block: the key of the coins in use, if any.
    waits_for_feedback: whether losses are reported from outside, so that a replica that leaves takes none along.
    """

    def __init__(
        self,
        state: FoldedState,
        rules: DecisionRules,
        head: bytes,
        generation: int,
        block: CoinKey | None,
        *,
        waits_for_feedback: bool = False,
    ) -> None:
        self.state = state
        self.head = head
        self.generation = generation
        self.pending: list[tuple[str, str]] = []
        # Audits by coin, and drafts served in the expert's place, up to the last event, as the scripts count them.
        self.counted = (0, 0)
        # Events that came too late, by kind.
        self.late: Counter[str] = Counter()
        self._rules = rules
        # Version and text of the models that were in force last.
        self._models = "", "[]"
        self._waits_for_feedback = waits_for_feedback
        self._first, self._draws = (block.first_step, block_of_draws(block.key)) if block is not None else (0, [])

    def add(self, entry: Entry, note: Mapping[str, Any]) -> None:
        """Make an entry, and apply it."""
        text = entry_text(entry)
        self.state.apply(entry, note)
        self.head = next_head(self.head, text)
        self.pending.append((text, encode(note)))

    def open(self, entry: Opened) -> None:
        """Make the first entry of a journal: the state is that after it."""
        text = entry_text(entry)
        self.head = next_head(self.head, text)
        self.pending.append((text, "{}"))

    def take(self, event: Mapping[str, str]) -> None:
        """Make the entries that an event leads to."""
        kind = event["kind"]
        before = len(self.pending)
        audits, instead = self.counted
        self.counted = int(event.get("audits", audits)), int(event.get("instead", instead))
        if kind == "decided":
            self._decided(event)
        elif kind == "resolved":
            self._resolved(event)
        elif kind == "committed":
            self._first, self._draws = int(event["first"]), block_of_draws(bytes.fromhex(event["key"]))
            self.add(Committed(self._first, event["digest"]), {})
        elif kind in ("withdrawn", "overdue"):
            self._done(kind, event)
        elif kind == "left":
            self._left(event["replica"])
            return
        else:
            self.generation = int(event["generation"])
            if kind == "started":
                self.add(Started(), {})
            elif self._is_idle():
                self.add(Stopped(), {})
        if len(self.pending) == before:
            self.late[kind] += 1

    def next_rule(self) -> Fitted | None:
        """The stopping rule of a cascade that is due, if one is. Tickets know it by the entries they have seen."""
        route, policy = self.state.route, self.state.route.settings.policy
        route.charge()
        bettor = route.bettor
        if not isinstance(bettor, CascadeBettor) or not isinstance(policy, Cascade) or not bettor.fit_due:
            return None
        known = bettor.stages_by_uncertainty
        return Fitted(fit_rule(bettor.sample, policy.prices, route.terms, known, policy.spread).to_json())

    def next_score(self) -> Learned | None:
        """The learned score that is due, if one is; its number of tickets is to be filled in."""
        learning = self.state.route.learning
        return learning.next(0) if learning is not None and learning.due else None

    def in_force(self) -> PublishedTerms:
        """What holds for requests that arrive when it is published; nothing while tickets are not in use."""
        route = self.state.route
        if not route.running:
            return PublishedTerms("", "", "", "[]")
        route.charge()
        current = route.current
        threshold, rate, score = current.bettor.threshold, current.rate, current.active_score
        joined: Sequence[FrozenModel | OwnScore | JoiningRule] = ()
        if route.learning is not None:
            joined = [one.model for one in route.learning.joined]
        elif isinstance(current.bettor, CascadeBettor):
            joined = current.bettor.joined_rules
        version = f"{current.number}:{len(joined)}"
        if version != self._models[0]:
            self._models = version, encode([one.to_json() for one in joined])
        key = f"{threshold!r}|{rate!r}|{score}|{current.number}|{len(joined)}|{self.generation}"
        terms = f"{threshold!r}|{rate!r}|{score}|{route.entries}|{len(joined) + 1}"
        return PublishedTerms(key, terms, *self._models)

    def room(self) -> list[float]:
        """ε, then what ε times the step must reach for a draft to be kept after 0, 1, 2, … audits that are not folded.

        Empty for policies without a budget.
        """
        route = self.state.route
        bettor = route.bettor
        if not isinstance(bettor, BudgetBettor):
            return []
        route.charge()
        epsilon, needs = route.settings.epsilon, list[float]()
        while len(needs) < MOST_AUDITS and (not needs or needs[-1] <= epsilon * (route.step + FARTHEST)):
            needs.append(bettor.needs(len(needs)) * (1.0 + MARGIN))
        return [epsilon, *needs]

    def _decided(self, event: Mapping[str, str]) -> None:
        replica, ticket, _ = read_terms(event["ticket"], event["terms"])
        draft = decode(event["draft"])
        step = int(event["step"])
        if step != self.state.route.step + 1:
            raise EventsMissing(f"step {step} follows step {self.state.route.step}")
        draw, stale = self._draws[step - self._first], event["stale"] == "1"
        decision = decide_on_terms(self._rules, ticket, read_draft(draft), step, draw, stale=stale)
        self.add(decision, {**draft["n"], BY: replica})

    def _resolved(self, event: Mapping[str, str]) -> None:
        step, loss, cause, draft_served, refused, note, *stages = decode(event["outcome"])
        route = self.state.route
        decision = route.find(step)
        if decision is None or (loss is None and not refused and step in route.given_up):
            return
        loss = None if loss is None else float(loss)
        note = {**note, "propensity": decision.propensity}
        # Events that an earlier version left in the inbox have no stages.
        found = outcomes_from_json(stages[0]) if stages and stages[0] is not None else None
        self.add(Resolved(step, loss, cause, draft_served, refused, found), note)

    def _done(self, kind: str, event: Mapping[str, str]) -> None:
        epoch, number = map(int, event["ticket"].split(":"))
        route = self.state.route
        arrivals = route.by_arrival.arrivals if route.by_arrival is not None else None
        if epoch != route.epoch or not route.running or (arrivals is not None and not arrivals.is_open(number)):
            return
        if kind == "withdrawn":
            reason, at = decode(event["reason"])
            self.add(Withdrawn(number, reason), {"at": at})
        elif arrivals is None or number > arrivals.reached:
            self.add(Overdue(number), {})

    def _left(self, replica: str) -> None:
        """Give up on the audits of a replica that is gone."""
        route, owners = self.state.route, self.state.owners.by_step
        route.charge()
        if not self._waits_for_feedback:
            for step, decision in [one for one in route.owed.items() if owners.get(one[0]) == replica]:
                self.add(Resolved(step, None, RESTART), {"propensity": decision.propensity})

    def _is_idle(self) -> bool:
        route = self.state.route
        return route.running and not (route.by_arrival is not None and route.by_arrival.arrivals.held)
