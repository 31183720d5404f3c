"""The service of a gateway that shares its games with others through Redis."""

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from bpac.gateway.auth.keys import Identity
from bpac.gateway.config.archives import check_archive
from bpac.gateway.config.file import Config
from bpac.gateway.config.routes.routes import RouteSettings
from bpac.gateway.http.endpoints.metered import RequestCharge
from bpac.gateway.opening import open_decide_routes
from bpac.gateway.running_config import RunningConfig
from bpac.gateway.service import Service
from bpac.gateway.shared.desk.shared_decisions import SharedDecisions
from bpac.gateway.shared.finding import FoundGame, find_games
from bpac.gateway.shared.outages.outage_terms import OutageServing, check_outage
from bpac.gateway.shared.outages.outside_log import OutsideLog
from bpac.gateway.shared.shared_budgets import SharedBudgets
from bpac.gateway.shared.shared_game import SharedGame
from bpac.gateway.shared.shared_games import AllSharedGames, SharedGames
from bpac.gateway.telemetry.metrics.counters import Metrics
from bpac.stores.redis.server.connecting import RedisGone
from bpac.stores.redis.store import RedisStore, at_start
from bpac.stores.store import Game, LostEntries


class SharedService(Service):
    """All routes of a gateway; their games are in Redis.

    Parameters
    ----------
    config: the configuration.
    """

    def __init__(self, config: Config) -> None:
        _check_routes(config)
        check_archive(config.archive)
        super().__init__(config)
        self._losses = self.store.losses()
        self._listed = self.store.games()
        self._outage = _outage_serving(config, self.metrics)
        self._games = AllSharedGames(cast(RedisStore, self.store), self.metrics, self._outage, self.store_record)
        self._games.archive = config.archive
        # The games of each route, as they were found before the route is opened.
        self._found: dict[str, list[FoundGame]] = {}
        self._shared_budgets = SharedBudgets(self._games.client, self.budgets)
        self._refreshing: asyncio.Task[None] | None = None
        self.decisions = SharedDecisions(self.store, self.open_games)

    async def admit(self, identity: Identity, size: int) -> RequestCharge | None:
        """Count a request against the limits of its key at all gateways; ``BadRequest`` if one is reached."""
        return await self._shared_budgets.admit(identity, size)

    async def _join_games(self) -> None:
        try:
            await self._games.start()
        except RedisGone as error:
            await self._games.stop()
            raise at_start(error) from error

    async def reload(self, config: Config) -> None:
        """Answer new requests with another configuration; if this raises, nothing has changed."""
        _check_routes(config)
        await asyncio.to_thread(check_archive, config.archive)
        await self._games.client.command("PING")  # if Redis is gone, nothing is changed
        await super().reload(config)
        self._games.archive = config.archive
        await self._games.start()

    async def _find_games(self, running: RunningConfig) -> None:
        # In a thread: a server that does not answer must not hold up requests.
        self._found = await asyncio.to_thread(self._games_in_redis, running.config)

    def _games_in_redis(self, config: Config) -> dict[str, list[FoundGame]]:
        store = cast(RedisStore, self.store)
        return {name: find_games(store, route) for name, route in config.routes_with_games.items()}

    def _open_routes(self, running: RunningConfig) -> None:
        every = running.config.snapshot_every

        def open_games(settings: RouteSettings) -> SharedGames:
            return SharedGames(self._games, settings, every, self._found[settings.name])

        self._opener.open_routes(running, open_games)
        open_decide_routes(running, open_games)

    async def _agreed_score(self, route: RouteSettings, latest: Game | None, score: str) -> str:
        """The score of the first gateway that chose one, in place of the game that was the latest then."""
        return await asyncio.to_thread(self._agree, f"{route.name}:{latest.number if latest else 0}", score)

    def _agree(self, what: str, score: str) -> str:
        store = cast(RedisStore, self.store)
        store.client.command("HSETNX", store.names.scores, what, score)
        return str(store.client.command("HGET", store.names.scores, what).decode())

    def live_games(self) -> list[Any]:
        """The games of all routes."""
        routes = self._running.current.all_games()
        return [game for _, games in routes if isinstance(games, SharedGames) for game in games]

    async def refresh(self) -> None:
        """Read what other gateways have published in the games of all routes, as far as Redis answers in time.

        Whoever asks while it is being read gets the same: a server that hangs must not collect work.
        """
        task = self._refreshing
        if task is None or task.done():
            task = self._refreshing = asyncio.create_task(self._refresh())
        await asyncio.wait({task}, timeout=self._games.client.address.timeout)
        if task.done():
            task.result()

    async def _refresh(self) -> None:
        games = cast(list[SharedGame], self.live_games())
        for game in games:
            await game.refresh()
        if not any(game.side.down is not None for game in games):
            # In a thread: a server that does not answer must not hold up requests.
            self._losses = await asyncio.to_thread(self.store.losses)
            if self._losses:  # the dashboard names them
                with suppress(RedisGone):
                    self._listed = await asyncio.to_thread(self.store.games)

    def losses(self) -> list[LostEntries]:
        """Journals that lost acknowledged entries, as they were read last."""
        return self._losses

    def listed_games(self) -> list[Game]:
        """Every game in Redis, as they were read last."""
        return self._listed

    def shared_games(self) -> list[dict[str, Any]]:
        """Who folds each game, and how far its journal is, as JSON values."""
        return [game.sharing() for game in cast(list[SharedGame], self.live_games()) if game.started]

    def open_games(self) -> list[Any]:
        """All games that this gateway takes part in, also those that a reload has ended."""
        return list(self._games)

    async def _end_games(self) -> None:
        if self._refreshing is not None:
            self._refreshing.cancel()
            await asyncio.gather(self._refreshing, return_exceptions=True)
        await self._shared_budgets.stop()
        await self._games.stop()
        if self._outage is not None:
            self._outage.drafts.close()

    def _save_games(self) -> None:
        """Nothing to do: the folder of a game has taken a snapshot."""

    def store_status(self) -> dict[str, Any]:
        """Whether Redis can be reached, as JSON values."""
        record = self.store_record
        return record.to_json() | ({} if record.failure is None else {"cost": self._cost_of_outage()})

    def _cost_of_outage(self) -> str:
        if self._outage is None:
            return "the expert answers every request"
        return (
            f"drafts are served on the last threshold for at most {self._outage.settings.seconds:g} seconds, while no "
            "drift can be noticed; then the expert answers every request"
        )


def _check_routes(config: Config) -> None:
    for route in config.routes_with_games.values():
        if config.store_outage is not None:
            check_outage(route)


def _outage_serving(config: Config, metrics: Metrics) -> OutageServing | None:
    """What is served while Redis is gone; none if the expert answers."""
    if config.store_outage is None:
        return None
    for route in config.routes:
        metrics.count("bpac_outage_drafts_total", by=0, route=route)
    return OutageServing(config.store_outage, OutsideLog(Path(config.store_outage.file)), metrics)
