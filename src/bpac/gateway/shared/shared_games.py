"""The shared games of a route, one for each segment of its traffic; and all shared games of a gateway."""

import asyncio
import logging
from collections.abc import Iterable, Iterator
from typing import Any

from bpac.errors import StoreError
from bpac.gateway.chat.request import ChatRequest
from bpac.gateway.config.archives import ArchiveSettings
from bpac.gateway.config.routes import RouteSettings
from bpac.gateway.games.segment_names import Caller, segment_of, task_of
from bpac.gateway.games.terms import changes, terms_of
from bpac.gateway.shared.outage_terms import OutageServing
from bpac.gateway.shared.shared_desk import SharedDesk
from bpac.gateway.shared.shared_game import SharedGame
from bpac.gateway.telemetry.counters import Metrics
from bpac.routing.learning.learned_score import LearnedScore
from bpac.routing.router import Router
from bpac.routing.segments import OTHERS, Segments
from bpac.stores.redis.connecting import RedisClient
from bpac.stores.redis.score_pool import ScorePool
from bpac.stores.redis.store import RedisStore
from bpac.stores.store import Game

log = logging.getLogger("bpac.gateway")


class AllSharedGames:
    """The shared games that this gateway has open, by number.

    Parameters
    ----------
    store: the list of games, and their journals for reading.
    metrics: counts what happens to them.
    outage: what is served while Redis is gone (default: the expert's answers).

    Attributes
    ----------
    archive: where their old entries are archived; none if they are not.
    """

    def __init__(self, store: RedisStore, metrics: Metrics, outage: OutageServing | None = None) -> None:
        self.store = store
        self.archive: ArchiveSettings | None = None
        self._outage = outage
        self._metrics = metrics
        self.client = RedisClient(store.address)
        self._games: dict[int, SharedGame] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        # What segments learn together. Games that began with other settings learn apart, and some not at all.
        self._pools: dict[tuple[str, LearnedScore, float], ScorePool] = {}

    def __iter__(self) -> Iterator[SharedGame]:
        return iter(list(self._games.values()))

    def find(self, route: RouteSettings, segment: str, alpha: float, snapshot_every: int) -> SharedGame:
        """The game of a segment with the terms of a route; a new one if there is none that can go on."""
        terms = terms_of(route, route.new_router(alpha))
        kept = current_shared_game(self.store, route, segment, terms)
        game = self._games.get(kept.number)
        if game is None or game.kept != kept or game.side.ended is not None:
            game = self._games[kept.number] = SharedGame(
                self.client, self.store, kept, route,
                alpha=alpha, snapshot_every=snapshot_every, metrics=self._metrics, lost=self._lost,
                archive=lambda: self.archive, pool=self.pool, outage=self._outage,
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
            await game.start()

    async def stop(self) -> None:
        """Leave all games."""
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
        self._metrics.count("bpac_journal_losses_total", game=str(game.number))
        log.error(
            "the journal lost entries: a new game begins with a threshold of 0",
            extra={"route": game.route.name, "segment": game.segment, "game": game.number, "why": why},
        )
        while game.successor is None:
            try:
                seen = game.folder.copy.acknowledged.entries
                await asyncio.to_thread(self.store.end_game, game.kept, why, seen)
                successor = self.find(game.route, game.segment, game.alpha, game.folder.snapshot_every)
                await successor.start()
                game.successor = successor
            except StoreError as error:
                log.warning("no new game can begin yet", extra={"route": game.route.name, "error": str(error)})
                await asyncio.sleep(1.0)


def current_shared_game(store: RedisStore, route: RouteSettings, segment: str, terms: str) -> Game:
    """The latest game of a segment with these terms that can go on, or a new one.

    Parameters
    ----------
    store: the list of games.
    route, segment: the route and the segment.
    terms: what the promise is about; a game with other terms does not go on.
    """
    games = [game for game in store.games() if (game.route, game.segment) == (route.name, segment)]
    found = next((game for game in reversed(games) if not changes(game.terms, terms, route.open_terms)), None)
    if found is None or store.is_over(found):
        if games and found is None:
            why = "; ".join(map(str, changes(games[-1].terms, terms, route.open_terms)))
            log.warning("terms changed: a new game begins (%s)", why, extra={"route": route.name, "segment": segment})
        return store.open_game(route.name, segment, terms)
    if found is not games[-1]:
        store.resume(found)
        log.warning("terms changed: game %d, which has these terms, goes on", found.number, extra={"route": route.name})
    return found


class SharedGames:
    """The shared games of a route, by segment.

    Parameters
    ----------
    games: all shared games of the gateway.
    route: the settings of the route.
    snapshot_every: entries between two snapshots.
    """

    def __init__(self, games: AllSharedGames, route: RouteSettings, snapshot_every: int) -> None:
        self._all = games
        self._route = route
        self._snapshot_every = snapshot_every
        self._games: dict[str, SharedGame] = {}
        self._segments: Segments | None = None
        if route.segment_by is None:
            self._start("", route.alpha)
            return
        self._segments = Segments(self._start, route.alpha, alpha_scope=route.alpha_scope, most=route.most_segments)
        for game in sorted(games.store.games(), key=lambda game: game.number):
            if game.route == route.name and game.segment:
                self._segments.router(game.segment)

    def __iter__(self) -> Iterator[SharedGame]:
        return iter([_latest(game) for game in self._games.values()])

    async def desk(self, request: ChatRequest, caller: Caller, label: str) -> SharedDesk:
        """The game that a request belongs to; a new one for the first request of a segment."""
        segment = ""
        if self._segments is not None:
            segment = segment_of(self._route.segment_by or "", request, caller, label)
            self._segments.router(segment)
        game = _latest(self._games.get(segment) or self._games[OTHERS])
        if not game.started:  # it is the first request of its segment, or a reload has just opened it
            await game.start()
        return game.desk

    def desks(self) -> Iterable[SharedDesk]:
        """The games that are open, as chat requests use them."""
        return (_latest(game).desk for game in self._games.values())

    def task(self, request: ChatRequest, caller: Caller, label: str) -> str:
        """The task of a request, as ``task_by`` names it; empty if it names none."""
        return task_of(self._route, request, caller, label)

    def _start(self, segment: str, alpha: float) -> Router:
        game = self._games[segment] = self._all.find(self._route, segment, alpha, self._snapshot_every)
        return game.router


def _latest(game: SharedGame) -> SharedGame:
    while game.successor is not None:
        game = game.successor
    return game
