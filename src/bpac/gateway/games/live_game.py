"""A live game: one betting game at work, with its journal, its router and the requests and rounds under way."""

import logging
import random
import time
from dataclasses import replace
from typing import Any

from bpac.gateway.config.routes.routes import RouteSettings
from bpac.gateway.games.desk import Decided
from bpac.gateway.games.journal import GameJournal, now
from bpac.gateway.games.local_desk import LocalDesk
from bpac.gateway.games.money.audit_prices import USUAL, expected_now
from bpac.gateway.games.money.draft_worth import MoneyTerms, skips_draft
from bpac.gateway.games.money.savings import Prices
from bpac.gateway.games.restoring.restoring import tokens_of
from bpac.gateway.games.rounds.decision_ids import decision_id
from bpac.gateway.games.rounds.drafting import DraftsUnderWay
from bpac.gateway.games.rounds.outcomes import RESTART, OpenOutcomes
from bpac.gateway.games.rounds.reported import Reported
from bpac.gateway.games.rounds.sessions import NOTED as SESSION
from bpac.gateway.games.rounds.sessions import Sessions, session_key
from bpac.gateway.games.shown.status import GameStatus, game_status
from bpac.gateway.games.shown.troubles import GameTrouble
from bpac.gateway.telemetry.failures.unscored_log import UnscoredLog
from bpac.gateway.telemetry.score_watch import ScoreWatch
from bpac.models.prompts import PROMPT_FEATURES
from bpac.routing.cascade.router import CascadeRouter
from bpac.routing.cascade.walk import Walk
from bpac.routing.decision import Decision
from bpac.routing.learning.features import Features
from bpac.routing.tickets.ticket import Ticket
from bpac.stores.store import Game, Store

log = logging.getLogger("bpac.gateway")

# Later requests of episodes that a crash may forget at most, in tokens spent.
MOST_UNWRITTEN = 100
# Callers must not be able to predict which requests are drafted.
_COIN = random.SystemRandom()


class LiveGame:
    """One game of a route. Nothing in it waits: callers wait until a decision is durable before they act on it.

    Parameters
    ----------
    store: where the journal is kept.
    route: the settings of the route.
    segment: the segment of the traffic; empty if the route is not divided.
    alpha: the probability with which the promise may fail in this game.
    snapshot_every: entries between two snapshots.

    Attributes
    ----------
    journal: the journal, and the state that follows from it.
    feature_names: what scores are learned from; none if the game learns no score.
    embeds_prompts: whether the embedding of the prompt is among it.
    drafting: requests that wait for their draft.
    outcomes: rounds that wait for their outcome.
    scores: finds scores that cannot be right.
    unscored_log: logs requests without a score.
    sessions: the sessions whose requests follow one decision.
    desk: the game as chat requests use it.
    """

    def __init__(self, store: Store, route: RouteSettings, segment: str, alpha: float, snapshot_every: int) -> None:
        self.store = store
        self.route = route
        self.segment = segment
        self.journal = GameJournal(store, route, segment, alpha, snapshot_every)
        self.router = self.journal.router
        learned = self.router.settings.policy.learned
        self.feature_names = learned.features if learned is not None else ()
        self.embeds_prompts = not set(PROMPT_FEATURES).isdisjoint(self.feature_names)
        self.history = self.journal.history
        self.savings = self.journal.savings
        self.drafting = DraftsUnderWay(self.journal, route)
        self.outcomes = OpenOutcomes(self.journal, route)
        self.scores = ScoreWatch(route.name)
        self.unscored_log = UnscoredLog(route.name)
        self.sessions = Sessions(route)
        if route.sticky_by is not None:
            self.sessions.restore(store, self.kept)
        self._tokens = tokens_of(self.savings)
        self.desk = LocalDesk(self)
        # The graders of open rounds ended with their process. Feedback from outside may still come.
        for decision in self.router.owed:
            if self.outcomes.external:
                self.outcomes.wait_for(decision)
            else:
                self.outcomes.forfeit(decision, RESTART)

    @property
    def number(self) -> int:
        """The number of the game in its store."""
        return self.journal.game.number

    @property
    def kept(self) -> Game:
        """The game in its store."""
        return self.journal.game

    @property
    def written(self) -> int:
        """The number of entries that this process wrote."""
        return self.journal.written

    @property
    def score_trouble(self) -> GameTrouble | None:
        """What is wrong with the latest scores; none if nothing is known to be."""
        return self.scores.trouble

    def expect(self, expert_calls: int) -> None:
        """Set the exploration rate of the requests that arrive from now on to what an audit costs at the moment.

        Parameters
        ----------
        expert_calls: calls of the expert's model that are under way.
        """
        before = self.router.expected
        if not self.route.prices_audits and before._replace(rounds=0) == USUAL:
            return  # a reload may have removed the settings that a price came from
        expected = expected_now(self.route, before, time.time(), expert_calls)
        if expected != before:
            self.router.expect(**expected._asdict())

    def skips_draft(self) -> bool:
        """Whether the request that has just arrived goes to the expert without a draft, because drafts cost more."""
        if self.route.minimise != "money":
            return False
        settings = self.router.settings
        terms = MoneyTerms(Prices.of(self.route), settings.epsilon, settings.exploration.floor)
        return skips_draft(self.savings.recent, terms, _COIN)

    def walk(self, ticket: Ticket) -> Walk:
        """Send a request of a cascade on its way, on the terms of its ticket."""
        if not isinstance(self.router, CascadeRouter):
            raise TypeError("the game of a cascade has a router of its own kind")
        return self.router.walk(ticket)

    def decide(
        self, uncertainty: float | Walk, ticket: Ticket, note: dict[str, Any], features: Features | None = None
    ) -> Decision:
        """Decide a request; the decision must be durable before anything is served on it.

        Parameters
        ----------
        uncertainty: the score of the draft; in a cascade, the walk of the request.
        ticket: of the request; it must be under way.
        note: counts of tokens, and who made the request, for the journal.
        features: what else is known of the draft, where the game learns scores.
        """
        at = now()
        decision = self.router.propose(uncertainty, ticket=ticket, features=features)
        self.journal.write(decision, {"at": at, **note})
        self.router.apply(decision)
        if decision.call_expert:
            self.outcomes.wait_for(decision)
        if SESSION in note:
            self.sessions.decided(note[SESSION], decision)
        self.drafting.decided(ticket)
        self.history.decided(decision, at, self.router, self._tokens)
        # Last: this may take a snapshot, for which router and history must be at the same step.
        self.drafting.release()
        return decision

    def session_key(self, caller: str, session: str) -> str:
        """The key of a caller's session."""
        return session_key(self.store.secret, caller, session)

    def followed(self, decision: Decision) -> Decided:
        """The decision that a later request of its episode follows; the outcome of the episode may come later, too."""
        self.outcomes.extend(decision)
        return Decided(decision, self.decision_id(decision.step))

    def sweep(self, time_now: float) -> None:
        """Give up on the drafts and the outcomes whose deadline has passed.

        Parameters
        ----------
        time_now: the time on the monotonic clock, in seconds.
        """
        self.drafting.sweep(time_now)
        self.outcomes.sweep(time_now)
        self.sessions.sweep()
        if self.savings.late_followed.requests >= MOST_UNWRITTEN:
            self.journal.snapshot()

    @property
    def idle(self) -> bool:
        """Whether no request waits for its draft and no round for its outcome."""
        return not self.drafting and not self.outcomes

    def go_on_under(self, route: RouteSettings, snapshot_every: int) -> None:
        """Continue under other settings of the route, with equal terms; what has a deadline already keeps it.

        Parameters
        ----------
        route: the settings of the route after a reload.
        snapshot_every: entries between two snapshots.
        """
        self.route = route
        self.drafting.go_on_under(route)
        self.outcomes.go_on_under(route)
        self.journal.go_on_under(snapshot_every)

    def stop(self) -> None:
        """Write to the journal that no request is under way; requests that are under way count as cut off."""
        self.drafting.release()
        if self.drafting:
            log.warning("requests cut off", extra={"route": self.route.name, "requests": len(self.drafting)})
        self.router.stop()

    def decision_id(self, step: int) -> str:
        """The id of a decision, which cannot be guessed and which no other decision ever has."""
        return decision_id(self.store, self.journal.game, step)

    def answers(self, step: int) -> dict[str, str] | None:
        """Both answers of a round that waits for feedback; none if they are not kept."""
        return self.outcomes.answers(step)

    async def feedback(self, step: int, reported: Reported) -> None:
        """Record what is reported from outside; ``ObservationError`` or ``InputError`` if it does not fit."""
        self.outcomes.feedback(step, reported)

    def status(self) -> GameStatus:
        """Where the game stands."""
        savings = self.savings.report(Prices.of(self.route))
        names = [model.name for model in self.route.models]
        status = game_status(self.kept, self.router, self.history, savings, self.scores.trouble, models=names)
        return status if self.route.sticky_by is None else replace(status, sessions=self.sessions.to_json())
