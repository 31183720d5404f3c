"""A game that several gateways share: this gateway's copy of its state, its part in deciding, and in folding it."""

import asyncio
import logging
import random
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any, cast

from bpac.dashboard.history.history import History
from bpac.errors import StoreError
from bpac.gateway.config.archives import ArchiveSettings
from bpac.gateway.config.routes.routes import RouteSettings
from bpac.gateway.games.money.audit_prices import USUAL, expected_now
from bpac.gateway.games.money.draft_worth import MoneyTerms, skips_draft
from bpac.gateway.games.money.savings import Prices, Savings
from bpac.gateway.games.rounds.decision_ids import decision_id
from bpac.gateway.games.rounds.reported import Reported
from bpac.gateway.games.shown.status import GameStatus, game_status
from bpac.gateway.games.shown.troubles import GameTrouble
from bpac.gateway.shared.archiving import GameArchiving
from bpac.gateway.shared.desk import shared_feedback
from bpac.gateway.shared.desk.shared_desk import SharedDesk
from bpac.gateway.shared.desk.shared_sessions import SharedSessions
from bpac.gateway.shared.journal_watch import JournalWatch
from bpac.gateway.shared.learning_together import LearningTogether
from bpac.gateway.shared.outages.outage_terms import OutageServing
from bpac.gateway.shared.outages.outages import RedisOutages
from bpac.gateway.shared.outages.outside_game import OutsideGame
from bpac.gateway.shared.state import SharedRestoring, SharedState
from bpac.gateway.telemetry.metrics.counters import Metrics
from bpac.gateway.telemetry.score_watch import ScoreWatch
from bpac.routing.journal.entries import Opened
from bpac.routing.recorded_terms import DecisionRules
from bpac.routing.router import Router
from bpac.stores.redis.folding.folder import Folder
from bpac.stores.redis.folding.score_pool import ScorePool
from bpac.stores.redis.journal import EntriesLost
from bpac.stores.redis.replicas.replica import GameReplica
from bpac.stores.redis.server.connecting import RedisClient, WrongType
from bpac.stores.redis.store import RedisStore
from bpac.stores.store import Game

log = logging.getLogger("bpac.gateway")

# Seconds between two looks at a game that is folded here, at first and at most while nothing happens; and after a
# failure. Each look that finds something is two calls of Redis, and no request waits for it.
PAUSE, LONGEST_PAUSE, AFTER_FAILURE = 0.02, 0.05, 0.2
# The share of the lease between two looks at a game that another gateway folds, and seconds at most. Seconds between
# two times that its state is read although nobody asks: prices and the worth of grades are estimated from it.
LOOKS, LONGEST_LOOK, REFRESH_EVERY = 0.1, 0.25, 15.0

# Callers must not be able to predict which requests are drafted.
_COIN = random.SystemRandom()


class SharedGame:
    """One game of a route, in a gateway that shares it with others.

    Parameters
    ----------
    client: the connections to Redis.
    store: the journals, for reading.
    kept: the game in the store.
    route: the settings of the route.
    alpha: the probability with which the promise may fail in this game.
    snapshot_every: entries between two snapshots.
    metrics: counts requests that found Redis gone.
    rounds_before: rounds of the longest earlier game of the same segment: as many are expected of this one.
    lost: called when the journal lost entries: another game takes the place of this one.
    outages: records since when Redis cannot be used.
    archive: gives where old entries are archived; none if they are not.
    pool: gives what the game learns together with others; none if it learns alone.
    outage: what is served while Redis is gone (default: the expert's answers).

    Attributes
    ----------
    successor: the game that took the place of this one; none as long as it goes on.
    """

    def __init__(
        self,
        client: RedisClient,
        store: RedisStore,
        kept: Game,
        route: RouteSettings,
        *,
        alpha: float,
        snapshot_every: int,
        metrics: Metrics,
        rounds_before: int,
        lost: "Callable[[SharedGame], None]",
        outages: RedisOutages,
        archive: Callable[[], ArchiveSettings | None] = lambda: None,
        pool: "Callable[[SharedGame], ScorePool | None]" = lambda game: None,
        outage: OutageServing | None = None,
    ) -> None:
        self.store = store
        self.kept = kept
        self.route = route
        self.alpha = alpha
        self.segment = kept.segment
        self._lost = lost
        self._outages = outages
        self._learning_together = LearningTogether(kept.number, lambda: pool(self))
        self._lease = client.address.lease
        settings = route.new_router(alpha).settings
        self.rules = DecisionRules.of(settings)
        self.folder = Folder(
            client,
            store.of(kept),
            kept,
            replica="",
            settings=Opened(settings.to_json()),
            restoring=SharedRestoring(switch=route.is_switch),
            lease=self._lease,
            snapshot_every=snapshot_every,
            waits_for_feedback=route.loss["name"] == "external",
        )
        self.side = GameReplica(
            client, store.of(kept), self.rules, client.address.timeout, self._renamed, noticed=self._noticed
        )
        self.outside = OutsideGame(outage, client, store.of(kept), route.name, self.side)
        self.sessions = SharedSessions(route, client, store.of(kept))
        self.scores = ScoreWatch(route.name)
        self._watch = JournalWatch()
        self.desk = SharedDesk(self, metrics)
        self._archiving = GameArchiving(store, kept, archive, metrics)
        self.successor: SharedGame | None = None
        # What is shown while nothing is read: before the first time, and while Redis is gone.
        self._shown = SharedRestoring(switch=route.is_switch).new(Opened(settings.to_json()))
        self._refreshed_at = -REFRESH_EVERY
        # One at a time folds or reads: both change the copy of the state.
        self._stepping = asyncio.Lock()
        self._rounds_before = rounds_before
        self._expert_calls = 0
        self._stops = False
        self._starting = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None

    @property
    def started(self) -> bool:
        """Whether requests can be decided: this gateway has joined the game."""
        return self._task is not None

    def _renamed(self, name: str) -> None:
        self.folder.replica = name

    def _noticed(self, outage: StoreError | None) -> None:
        if outage is not None:
            self._outages.begin(self, outage)
        else:
            self._outages.end(self, lost=self.side.ended is not None)

    async def start(self) -> None:
        """Join the game and begin to follow it; nothing happens if it was done before."""
        async with self._starting:  # the first requests of a segment may come together
            if self._task is None:
                await self.side.join()
                self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Leave the game: requests that are under way here count as cut off."""
        self._stops = True
        if self._task is None:
            return  # it was never joined
        await self._task
        await self._archiving.stop()
        await self.desk.stop()
        try:
            try:
                await self.outside.report(leaves=True)
            finally:
                await self.side.leave()
            async with self._stepping:
                await self.folder.stop()
        except StoreError as error:
            log.warning("could not leave a game in Redis", extra={"game": self.number, "error": str(error)})

    async def _run(self) -> None:
        pause = PAUSE
        task = asyncio.current_task()
        assert task is not None
        # A cancellation may be lost in a call that fails at the same moment.
        while not self._stops and self.side.ended is None and not task.cancelling():
            self._watch.look(self.folder.published, self.lag)
            try:
                async with self._stepping:
                    more = await self.folder.step()
                    await self._expect()
                    await self.outside.report()
                await self.side.beat(self._lease / 4)
                learning = self.state.route.learning if self.folder.token else None
                await self._learning_together.look(learning, quietly=self.side.down is not None)
                self._archiving.look(self.folder.token, self.written)
                if time.monotonic() - self._refreshed_at >= REFRESH_EVERY:
                    await self.refresh()
            except (EntriesLost, WrongType) as error:
                self.side.end(error)
                break
            except StoreError:
                more, pause = False, AFTER_FAILURE
                with suppress(StoreError):  # an outage is noticed there, also while nobody asks anything
                    await self.side.beat(self._lease / 4)
            except Exception as error:  # whatever it is, requests go on, and it is tried again
                log.error("could not fold a game", extra={"game": self.number}, exc_info=error)
                self.folder.give_up()
                more, pause = False, 5 * AFTER_FAILURE
            if not more:
                if not self.folder.token:
                    pause = max(pause, min(LOOKS * self._lease, LONGEST_LOOK))
                else:
                    pause = PAUSE if self.folder.lag else min(2 * pause, LONGEST_PAUSE)
                await asyncio.sleep(pause)
                pause = min(pause, LONGEST_PAUSE)
        if self.side.ended is not None and not self._stops:
            self._lost(self)

    async def refresh(self) -> None:
        """Read what another gateway has published since; while Redis is gone, what was read last is shown."""
        if self.started and not self._stops and self.side.ended is None and self.side.down is None:
            async with self._stepping:
                try:
                    await self.folder.refresh()
                    await self.outside.read()
                    await self.sessions.read()
                    self._refreshed_at = time.monotonic()
                except EntriesLost as error:
                    self.side.end(error)
                except StoreError as error:
                    log.debug("the state of a game could not be read", extra={"error": str(error)})

    async def _expect(self) -> None:
        """The folder says what is expected of the rounds to come, if it has changed."""
        before = self.router.expected
        if not self.folder.token:
            return
        expected = before
        if self.route.prices_audits or before._replace(rounds=0) != USUAL:
            expected = expected_now(self.route, before, time.time(), self._expert_calls)
        if not self.router.step and self._rounds_before > expected.rounds:
            expected = expected._replace(rounds=self._rounds_before)
        if expected != before:
            await self.folder.write(expected, {})

    def arrived(self, expert_calls: int) -> bool:
        """Note the load of the expert; whether a request goes to the expert without a draft, because drafts cost more.

        Parameters
        ----------
        expert_calls: calls of the expert's model that are under way in this gateway.
        """
        self._expert_calls = expert_calls
        if self.route.minimise != "money":
            return False
        settings = self.router.settings
        terms = MoneyTerms(Prices.of(self.route), settings.epsilon, settings.exploration.floor)
        return skips_draft(self.savings.recent, terms, _COIN)

    def sweep(self, time_now: float) -> None:
        """Give up on the drafts and the outcomes whose deadline has passed."""
        self.desk.sweep(time_now)

    def go_on_under(self, route: RouteSettings, snapshot_every: int) -> None:
        """Continue under other settings of the route, with equal terms."""
        self.route = self.sessions.route = route
        self.folder.snapshot_every = snapshot_every
        self.desk.drafting.go_on_under(route)

    @property
    def state(self) -> SharedState:
        """The copy of the state in this gateway, as it was read last."""
        self._shown = cast(SharedState, self.folder.state or self._shown)
        return self._shown

    @property
    def router(self) -> Router:
        """The state after the last entry that was read."""
        return self.state.router

    @property
    def history(self) -> History:
        """What the dashboard shows of the past."""
        return self.state.history

    @property
    def savings(self) -> Savings:
        """What was spent and saved."""
        return self.state.savings

    @property
    def number(self) -> int:
        """The number of the game in its store."""
        return self.kept.number

    @property
    def written(self) -> int:
        """A number that changes with every entry of the journal."""
        return self.folder.copy.position.entries

    @property
    def lag(self) -> int:
        """Rounds that are decided and not in the journal yet, as far as this gateway knows."""
        return max(self.folder.decided - self.folder.folded, 0)

    @property
    def score_trouble(self) -> GameTrouble | None:
        """What is wrong with the latest scores; none if nothing is known to be."""
        return self.scores.trouble

    def decision_id(self, step: int) -> str:
        """The id of a decision, which cannot be guessed and which no other decision ever has."""
        return decision_id(self.store, self.kept, step)

    def answers(self, step: int) -> dict[str, str] | None:
        """Both answers of a round that waits for feedback here; none if they are not kept."""
        return self.desk.answers(step)

    async def feedback(self, step: int, reported: Reported) -> None:
        """Record what is reported from outside; ``ObservationError`` or ``InputError`` if it does not fit."""
        await shared_feedback.record(self, step, reported)

    def status(self) -> GameStatus:
        """Where the game stands."""
        state = self.state
        savings = state.savings.report(Prices.of(self.route))
        names = [model.name for model in self.route.models]
        status = game_status(self.kept, state.router, state.history, savings, self.scores.trouble, models=names)
        trouble = self._archiving.trouble
        troubles = status.troubles if trouble is None else (*status.troubles, trouble)
        sessions = self.sessions.to_json() if self.route.sticky_by is not None else None
        return replace(status, shared=self._shared(), troubles=troubles, sessions=sessions)

    def sharing(self) -> dict[str, Any]:
        """The part of the status about the gateways that share the game, and since when the journal is behind."""
        self._watch.look(self.folder.published, self.lag)
        names = {"route": self.route.name, "segment": self.segment, "game": self.number}
        watched = {"behind_since": self._watch.behind_since, "seconds_still": self._watch.seconds_still}
        return names | self._shared() | watched | {"lease": self._lease}

    def _shared(self) -> dict[str, Any]:
        folder, down = self.folder, self.side.ended or self.side.down
        return {
            "replica": folder.replica,
            "folder": folder.holder,
            "folding": bool(folder.token),
            "replicas": folder.replicas,
            "lag": self.lag,
            "entries": folder.published,
            "entries_per_second": self._watch.entries_per_second,
            "outside": self.outside.counts._asdict(),
            "calls": self.side.calls,
            "operations": self.side.operations,
            "error": None if down is None else str(down),
            "archive": self._archiving.to_json(),
        }
