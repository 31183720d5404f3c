"""A keeper: one betting game at work, with its router, its journal and the rounds whose outcome is owed."""

import itertools
import logging
import math
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from bpac.dashboard.history import History
from bpac.dashboard.state import state_of
from bpac.errors import AlreadyResolved, InputError, NotAudited, ObservationError
from bpac.gateway.chat.draft_outages import DraftOutages
from bpac.gateway.config.routes import RouteSettings
from bpac.gateway.games.decision_ids import CoinKeys, decision_name
from bpac.gateway.games.restoring import folded, tokens_of
from bpac.gateway.games.savings import Prices, Savings
from bpac.routing.coins import CommittedCoins
from bpac.routing.decision import Decision
from bpac.routing.journal.entries import Committed, Entry
from bpac.routing.router import Router
from bpac.routing.tickets.ticket import Ticket
from bpac.stores.store import Claim, Store

log = logging.getLogger("bpac.gateway")

# Causes of a forfeit.
EXPERT_FAILED = "expert failed"
DRAFT_FAILED = "draft failed"
DRAFT_CANCELLED = "draft cancelled"
GRADER_FAILED = "grader failed"
DEADLINE = "deadline"
RESTART = "restart"

MOST_ANSWERS = 1000


class LiveGame:
    """One game. Nothing in it waits: what must be durable before it is served, its callers wait for.

    Parameters
    ----------
    store: where the journal is kept.
    route: what is promised.
    segment: the kind of traffic.
    alpha: chance that the promise fails here.
    snapshot_every: entries between two snapshots.
    """

    def __init__(self, store: Store, route: RouteSettings, segment: str, alpha: float, snapshot_every: int) -> None:
        self.store = store
        self.route = route
        self.segment = segment
        self.savings = Savings()
        self.history = History()
        self._note: dict[str, Any] = {}
        self._snapshot_every = snapshot_every
        self._since_snapshot = 0
        # Requests that wait for their draft, in order of arrival, and when they no longer hold up those behind them.
        self._drafting: dict[Ticket, float] = {}
        self._outages = DraftOutages()
        # Open rounds and when their time runs out, soonest first: that is the order of their decisions.
        self._open: dict[int, tuple[float, Decision]] = {}
        # What is to be noted with the outcome of a round, should one come from outside.
        self._remembered: dict[int, dict[str, Any]] = {}
        # Both answers of such rounds, for those who are to compare them; in memory only, and not for ever.
        self._answers: dict[int, dict[str, str]] = {}
        terms = route.terms(route.new_router(alpha))
        games = [game for game in store.games() if (game.route, game.segment) == (route.name, segment)]
        lost = {loss.game: loss for loss in store.losses()}
        if (
            games
            and games[-1].terms == terms
            and games[-1].number not in lost
            and next(store.entries(games[-1]), None) is not None
        ):
            self.game = games[-1]
            kept = folded(store, self.game, self._append, CommittedCoins(CoinKeys(store, self.game)))
            self.router, self.savings, self.history = kept.router, kept.savings, kept.history
            self._since_snapshot = kept.since_snapshot
        else:
            if games and games[-1].terms != terms:
                log.warning("terms changed: a new game begins", extra={"route": route.name})
            elif games and games[-1].number in lost:
                # What was served in the rounds that are missing is not known, so that the old wealth proves nothing.
                log.error(
                    "the journal lost entries: a new game begins with a threshold of 0",
                    extra={"route": route.name, "segment": segment, "lost": str(lost[games[-1].number])},
                )
            self.game = store.open_game(route.name, segment, terms)
            self.router = route.new_router(alpha, self._append, CommittedCoins(CoinKeys(store, self.game)))
        self._tokens = tokens_of(self.savings)
        # Graders died with the process that asked them. Feedback from outside may still come.
        for decision in self.router.owed:
            if route.loss["name"] == "external":
                self._wait_for(decision)
            else:
                self.forfeit(decision, RESTART)

    def arrive(self) -> Ticket:
        """Take the ticket of a request that has just arrived: ``decide`` or ``withdraw`` must follow."""
        ticket = self.router.arrive()
        self._drafting[ticket] = time.monotonic() + self.route.draft_deadline
        return ticket

    def withdraw(self, ticket: Ticket, reason: str) -> None:
        """Let a ticket go without a decision; one that was decided or withdrawn before stays as it is."""
        if ticket not in self._drafting or ticket in self._outages:
            return
        self._note = {"at": round(time.time(), 3)}
        self.router.withdraw(ticket, reason)
        self._note = {}  # of a ticket from before an alarm nothing is written
        del self._drafting[ticket]
        self._snapshot_if_due()

    def is_under_way(self, ticket: Ticket) -> bool:
        """Whether a ticket can still be decided: an outage may have cut it off."""
        return ticket in self._drafting

    def draft_ended(self, ticket: Ticket, reason: str) -> None:
        """Let a ticket go whose draft broke off; if several did, their server is down and all are cut off."""
        others = len(self._drafting) - len(self._outages) - 1
        if self._outages.down or not self.is_under_way(ticket):
            self.withdraw(ticket, reason)
        elif not others:
            self._release()
            self.withdraw(ticket, reason)
        elif self._outages.failed(ticket, reason):
            log.warning(
                "the draft's server is down: requests under way go to the expert, and one is charged as loss 1",
                extra={"route": self.route.name, "model": self.route.draft.name, "requests": len(self._drafting)},
            )
            self._note = {"at": round(time.time(), 3), "cut_off": len(self._drafting)}
            self.router.cut_off()
            self._drafting.clear()

    def _release(self) -> None:
        """Withdraw the tickets whose drafts failed by themselves."""
        for ticket, reason in self._outages.release().items():
            self.withdraw(ticket, reason)

    def decide(self, uncertainty: float, ticket: Ticket, note: dict[str, Any]) -> Decision:
        """Decide, and journal the decision; it must be durable before anything is served on it."""
        at = round(time.time(), 3)
        self._note = {"at": at, **note}
        decision = self.router.decide(uncertainty, ticket=ticket)
        del self._drafting[ticket]
        self.history.decided(decision, at, self.router, self._tokens)
        # Only now: a snapshot that this may take wants router and history at the same step.
        self._release()
        if decision.call_expert:
            self._wait_for(decision)
        return decision

    def resolve(self, decision: Decision, loss: float | None, note: dict[str, Any], cause: str = GRADER_FAILED) -> None:
        """Take in the outcome of a round, or give it up if there is none; a round that has one already keeps it."""
        self._open.pop(decision.step, None)
        note = {**note, "propensity": decision.propensity}
        self._note = {"at": round(time.time(), 3), **note}
        try:
            if loss is None:
                self.router.forfeit(decision, cause)
            else:
                try:
                    self.router.observe(decision, loss)
                    self.history.resolved(decision, loss)
                except InputError:  # NaN, say: a grader that says such a thing has not said anything
                    self.router.forfeit(decision, cause)
        except AlreadyResolved:
            # The deadline was first, or other rounds crowded it out; its tokens were generated all the same.
            log.info("outcome too late", extra={"decision": self.id_of(decision.step)})
            self._note = {}
            self.savings.judged(note.get("judge_tokens", 0))
            return
        self._snapshot_if_due()

    def feedback(self, step: int, loss: float) -> None:
        """Take in a loss from outside; ``ObservationError`` or ``InputError`` if it does not fit."""
        if self.route.loss["name"] != "external":
            # Whoever asks would otherwise mark the answers.
            raise NotAudited("the drafts of this route are graded by the gateway: no loss is taken from outside")
        decision = self.store.decision(self.game, step)
        if decision is None:
            raise ObservationError(f"step {step} was never decided")
        note = self._remembered.get(step, {}) | {"propensity": decision.propensity}
        self._note = {"at": round(time.time(), 3), **note}
        self.router.observe(decision, loss)
        self.history.resolved(decision, loss)
        self._remembered.pop(step, None)
        self._answers.pop(step, None)
        self._open.pop(step, None)
        self._snapshot_if_due()

    def remember(self, decision: Decision, note: dict[str, Any], answers: dict[str, str]) -> None:
        """Keep what is to be noted with the outcome of a round, and what somebody else will judge it by."""
        if self.waits_for(decision):
            self._remembered[decision.step] = note
            self._answers[decision.step] = answers
            if len(self._answers) > MOST_ANSWERS:
                del self._answers[next(iter(self._answers))]

    def answers(self, step: int) -> dict[str, str] | None:
        """Both answers of a round that waits for a loss from outside; none if they are not kept any more."""
        return self._answers.get(step)

    def waits_for(self, decision: Decision) -> bool:
        """Whether the outcome of a round is still to come."""
        return decision.step in self._open

    def forfeit(self, decision: Decision, cause: str, *, draft_served: bool = False) -> bool:
        """Give up on the outcome of a round; false if that was done before, so that nothing more is recorded of it."""
        return self._closed(decision, lambda: self.router.forfeit(decision, cause, draft_served=draft_served))

    def refuse(self, decision: Decision, *, draft_served: bool) -> bool:
        """Take in that the expert refused to answer; false if the round has its outcome already."""
        recorded = self._closed(decision, lambda: self.router.refuse(decision, draft_served=draft_served))
        if recorded:
            self.history.resolved(decision, self.router.settings.epsilon)
        return recorded

    def _closed(self, decision: Decision, close: Callable[[], None]) -> bool:
        self._open.pop(decision.step, None)
        noted = self._remembered.pop(decision.step, {}) | {"propensity": decision.propensity}
        self._note = {"at": round(time.time(), 3), **noted}
        try:
            close()
        except AlreadyResolved:
            self._note = {}
            return False
        self._snapshot_if_due()
        return True

    def stop(self) -> None:
        """Note in the journal that no request is under way, unless some are, which are then cut off."""
        self._release()
        if self._drafting:
            log.warning("requests cut off", extra={"route": self.route.name, "requests": len(self._drafting)})
        self.router.stop()

    def sweep(self, now: float) -> None:
        """Stop waiting for the drafts, and give up on the rounds, whose time has run out."""
        late = [ticket for ticket, until in self._drafting.items() if until <= now]
        if any(ticket in self._outages for ticket in late):
            self._release()
        for ticket in filter(self.is_under_way, late):
            self.router.overdue(ticket)
            self._drafting[ticket] = math.inf
        due = list(itertools.takewhile(lambda waiting: waiting[0] <= now, self._open.values()))
        for _, decision in due:
            self.forfeit(decision, DEADLINE)

    def id_of(self, step: int) -> str:
        """The name of a decision, which nobody can guess and which no other decision ever has."""
        return decision_name(self.store, self.game, step)

    def snapshot(self) -> None:
        """Keep the state, so that a later start need not read the whole journal."""
        if self._since_snapshot or self.savings.late:
            self._since_snapshot = 0
            router = self.router.snapshot()
            claim = Claim(router["entries"], claimed(self.router))
            kept = {"router": router, "savings": asdict(self.savings), "history": self.history.state()}
            self.store.save_snapshot(self.game, kept, claim)

    def summary(self) -> dict[str, Any]:
        """Where the game stands, as JSON values."""
        standing = standing_of(self.router, self.history)
        savings = self.savings.report(Prices.of(self.route))
        return {"segment": self.segment, "game": self.game.number, **standing, "savings": savings}

    def _append(self, entry: Entry) -> None:
        # A commitment to coins comes right before the decision that the note is about.
        commits = isinstance(entry, Committed)
        note = self.savings.noted({} if commits else self._note)
        self.store.append(self.game, entry, note)
        self.savings.add(entry, note)
        self.history.unscored.follow(entry, note)
        self._since_snapshot += 1
        if not commits:
            self._note = {}

    def _wait_for(self, decision: Decision) -> None:
        self._open[decision.step] = (time.monotonic() + self.route.deadline, decision)
        # The router gives up on the oldest beyond its limit, and so need we not remember them.
        if len(self._open) > 2 * self.route.max_owed:
            oldest = next(iter(self._open))
            del self._open[oldest]
            self._remembered.pop(oldest, None)

    def _snapshot_if_due(self) -> None:
        if self._since_snapshot >= self._snapshot_every:
            self.snapshot()


def standing_of(router: Router, history: History) -> dict[str, Any]:
    """Where a game stands, as JSON values: its router's summary, its state, and the requests without a score."""
    summary = router.summary().to_json()
    unscored = history.unscored.report(summary["steps"])
    return {**summary, "state": state_of(router, history, summary), "unscored": unscored}


def claimed(router: Router) -> dict[str, Any]:
    """What a gateway says of a router, for auditors to check."""
    return {"step": router.step, "threshold": router.threshold, "certificate": asdict(router.certificate())}
