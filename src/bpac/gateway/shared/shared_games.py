"""The shared games of a route, one for each segment of its traffic; and all shared games of a gateway."""

import asyncio
import logging
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from bpac.errors import StoreError
from bpac.gateway.chat.request import ChatRequest
from bpac.gateway.config.archives import ArchiveSettings
from bpac.gateway.config.routes.decide_routes import DecideRouteSettings
from bpac.gateway.config.routes.routes import RouteSettings
from bpac.gateway.games.segment_names import Caller, segment_of, task_of
from bpac.gateway.shared.desk.shared_desk import SharedDesk
from bpac.gateway.shared.desk.unopened_desk import WITHOUT_STORE, UnopenedDesk
from bpac.gateway.shared.finding import FoundGame, alpha_of, find_game, known_place
from bpac.gateway.shared.opening import GameOpening, store_error
from bpac.gateway.shared.outages.outage_terms import OutageServing
from bpac.gateway.shared.outages.outages import RedisOutages
from bpac.gateway.shared.shared_game import SharedGame
from bpac.gateway.telemetry.failures.store_failures import StoreRecord
from bpac.gateway.telemetry.metrics.counters import Metrics
from bpac.routing.learning.learned_score import LearnedScore
from bpac.routing.segments import OTHERS
from bpac.stores.redis.folding.score_pool import ScorePool
from bpac.stores.redis.journal import EntriesLost
from bpac.stores.redis.server.connecting import RedisClient
from bpac.stores.redis.store import RedisStore

log = logging.getLogger("bpac.gateway")


class AllSharedGames:
    """The shared games that this gateway has open, by number.

    Parameters
    ----------
    store: the list of games, and their journals for reading.
    metrics: counts what happens to them.
    outage: what is served while Redis is gone (default: the expert's answers).
    record: what is shown and counted of outages (default: a new one).

    Attributes
    ----------
    archive: where their old entries are archived; none if they are not.
    """

    def __init__(
        self,
        store: RedisStore,
        metrics: Metrics,
        outage: OutageServing | None = None,
        record: StoreRecord | None = None,
    ) -> None:
        self.store = store
        self.archive: ArchiveSettings | None = None
        self._outage = outage
        self.metrics = metrics
        self.client = RedisClient(store.address)
        self._outages = RedisOutages(record or StoreRecord(metrics))
        self.opening = GameOpening(store.address.timeout, self._outages)
        self._games: dict[int, SharedGame] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        # What segments learn together. Games that began with other settings learn apart, and some not at all.
        self._pools: dict[tuple[str, LearnedScore, float], ScorePool] = {}

    def __iter__(self) -> Iterator[SharedGame]:
        return iter(list(self._games.values()))

    def live(self, found: FoundGame, route: RouteSettings, snapshot_every: int) -> SharedGame:
        """A game that was found in Redis, as this gateway plays it under the settings of a route."""
        kept = found.kept
        game = self._games.get(kept.number)
        if game is None or game.kept != kept or game.side.ended is not None:
            game = self._games[kept.number] = SharedGame(
                self.client, self.store, kept, route,
                alpha=found.alpha, snapshot_every=snapshot_every, metrics=self.metrics, lost=self._lost,
                rounds_before=found.rounds_before, archive=lambda: self.archive, pool=self.pool,
                outage=self._outage, outages=self._outages,
            )  # fmt: skip
        else:
            game.go_on_under(route, snapshot_every)
        return game

    def pool(self, game: SharedGame) -> ScorePool | None:
        """What a game learns together with other segments of its route; none if it learns alone or not at all."""
        settings = game.router.settings
        if game.route.segment_by is None or settings.policy.learned is None:
            return None
        key = (game.route.name, settings.policy.learned, settings.epsilon)
        if key not in self._pools:
            self._pools[key] = ScorePool(self.client, *key)
        return self._pools[key]

    async def start(self) -> None:
        """Join all games that were opened since."""
        for game in list(self._games.values()):
            if not game.started:
                await self.joined(game)

    async def joined(self, game: SharedGame) -> SharedGame:
        """Join a game; the one that takes its place if its journal lost entries. ``RedisGone`` if Redis is gone."""
        try:
            await game.start()
        except EntriesLost:
            await self._replace(game)
        return latest(game)

    async def stop(self) -> None:
        """Leave all games."""
        self.opening.stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*(game.stop() for game in self._games.values()))
        await self.client.close()

    def _lost(self, game: SharedGame) -> None:
        task = asyncio.create_task(self._replace(game))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _replace(self, game: SharedGame) -> None:
        """Begin a new game in place of one whose journal lost entries; until then the expert answers."""
        why = str(game.side.ended)
        self.metrics.count("bpac_journal_losses_total", game=str(game.number))
        log.error(
            "the journal lost entries: a new game begins with a threshold of 0",
            extra={"route": game.route.name, "segment": game.segment, "game": game.number, "why": why},
        )
        while game.successor is None:
            try:
                seen = game.folder.copy.acknowledged.entries
                await asyncio.to_thread(self.store.end_game, game.kept, why, seen)
                found = await asyncio.to_thread(find_game, self.store, game.route, game.segment, game.alpha)
                successor = self.live(found, game.route, game.folder.snapshot_every)
                await successor.start()
                game.successor = successor
            except Exception as error:  # whatever it is, it is tried again
                failure = store_error(error)
                self._outages.begin(game, failure)
                log.warning("no new game can begin yet", extra={"route": game.route.name, "error": str(failure)})
                await asyncio.sleep(1.0)
        self._outages.end(game, lost=True)


class SharedGames:
    """The shared games of a route, by segment.

    Parameters
    ----------
    games: all shared games of the gateway.
    route: the settings of the route.
    snapshot_every: entries between two snapshots.
    found: the games that it has already (default: none; each is looked for with the first request of its segment).
    """

    def __init__(
        self, games: AllSharedGames, route: RouteSettings, snapshot_every: int, found: Sequence[FoundGame] = ()
    ) -> None:
        self._all = games
        self._route = route
        self._snapshot_every = snapshot_every
        self._games: dict[str, SharedGame] = {}
        # The segments that had a game of their own when that was read last.
        self._listed: list[str] = []
        self._unopened: dict[str, UnopenedDesk] = {}
        games.metrics.count(WITHOUT_STORE, by=0, route=route.name)
        for one in found:
            self._take(one)

    def __iter__(self) -> Iterator[SharedGame]:
        return iter([latest(game) for game in self._games.values()])

    async def desk(self, request: ChatRequest, caller: Caller, label: str) -> SharedDesk | UnopenedDesk:
        """The game that a request belongs to; a new one for the first request of a segment.

        While a game cannot be opened, a desk without one. Routes that decide only have no expert: ``StoreError``.
        """
        segment = ""
        if self._route.segment_by is not None:
            segment = segment_of(self._route.segment_by, request, caller, label)
        game = self._known(segment)
        if game is None or not game.started:  # the first request of a segment, or a reload has just opened the game
            opening = self._all.opening
            game = await opening.opened(partial(self._open, segment), route=self._route.name, segment=segment)
            if game is None:
                if isinstance(self._route, DecideRouteSettings):
                    raise opening.failure or StoreError("the game could not be opened")
                return self._without_game(segment)
        return game.desk

    def desks(self) -> Iterable[SharedDesk]:
        """The games that are open, as chat requests use them."""
        return (latest(game).desk for game in self._games.values())

    def task(self, request: ChatRequest, caller: Caller, label: str) -> str:
        """The task of a request, as ``task_by`` names it; empty if it names none."""
        return task_of(self._route, request, caller, label)

    def _known(self, segment: str) -> SharedGame | None:
        """The game of a segment, if it is known here which one it is."""
        game = self._games.get(known_place(self._route, segment, self._listed))
        return None if game is None else latest(game)

    async def _open(self, segment: str) -> SharedGame:
        game = self._known(segment)
        if game is None:
            found = await asyncio.to_thread(find_game, self._all.store, self._route, segment, alpha_of(self._route))
            game = self._take(found)
        game = await self._all.joined(game)
        if (unopened := self._unopened.pop(segment, None)) is not None:
            unopened.savings.move_to(game.desk.savings)
        return game

    def _take(self, found: FoundGame) -> SharedGame:
        self._listed = found.listed
        game = self._games[found.kept.segment] = self._all.live(found, self._route, self._snapshot_every)
        return game

    def _without_game(self, segment: str) -> UnopenedDesk:
        if segment not in self._unopened and len(self._unopened) >= self._route.most_segments:
            segment = OTHERS  # callers choose the names: as many as there may be games are told apart
        if segment not in self._unopened:
            self._unopened[segment] = UnopenedDesk(segment, self._route.name, self._all.opening, self._all.metrics)
        return self._unopened[segment]


def latest(game: SharedGame) -> SharedGame:
    """The game that is played in the place of one, or the game itself."""
    while game.successor is not None:
        game = game.successor
    return game
