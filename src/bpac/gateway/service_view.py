"""The read-only half of a gateway: where it and its games stand."""

import asyncio
from collections import Counter
from collections.abc import Sized
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from bpac.errors import StoreError
from bpac.gateway.chat.outside import outside_counts
from bpac.gateway.chat.upstreams.deployments import Deployments
from bpac.gateway.config.file import Config
from bpac.gateway.config.routes.routes import RouteSettings
from bpac.gateway.deciding.caller_rounds import CallerRounds
from bpac.gateway.dispatcher import Dispatcher
from bpac.gateway.games.live_game import LiveGame
from bpac.gateway.games.restoring.retired import RetiredGames
from bpac.gateway.games.shown.status import GameStatus, GatewayStatus
from bpac.gateway.health.monitor import HealthMonitor
from bpac.gateway.running_config import RunningConfigs
from bpac.gateway.telemetry.failures.rejections import Rejections
from bpac.gateway.telemetry.failures.store_failures import StoreRecord
from bpac.gateway.telemetry.failures.upkeep import Upkeep
from bpac.gateway.telemetry.failures.upstream_failures import UpstreamRecords
from bpac.gateway.telemetry.metrics.counters import Metrics
from bpac.gateway.telemetry.metrics.prometheus import prometheus_text
from bpac.gateway.telemetry.prose_watch import warnings_of
from bpac.stores import Store
from bpac.stores.store import Game, LostEntries


class ServiceView:
    """What can be asked of a gateway. Asking changes nothing in its games.

    Attributes
    ----------
    connections: the open connections of callers.
    records: what is known about each model, whatever it is used for.
    """

    connections: Sized
    records: UpstreamRecords
    metrics: Metrics
    rejections: Rejections
    store: Store
    store_record: StoreRecord
    upkeep: Upkeep
    monitor: HealthMonitor
    dispatcher: Dispatcher
    caller_rounds: CallerRounds
    _running: RunningConfigs
    _retired: RetiredGames
    _sweeper: asyncio.Task[None] | None

    @property
    def config(self) -> Config:
        """The configuration of new requests."""
        return self._running.current.config

    @property
    def ready(self) -> bool:
        """Whether requests are answered: the gateway runs, its store works, and not all models are down."""
        if not self._works:
            return False
        single = [route.expert for route in self.config.single_routes.values()]
        answerable = [*map(self._can_answer, self.config.routes.values())]
        answerable += [not self.monitor.is_down(model.name) for model in single]
        answerable += [True] * len(self.config.decide_routes)
        return not answerable or any(answerable)

    @property
    def _works(self) -> bool:
        return self._sweeper is not None and not self.dispatcher.stopping and self.store.failure is None

    def _can_answer(self, route: RouteSettings) -> bool:
        # Without its draft a route is answered by its expert, and without its expert accepted drafts are served.
        return not (self.monitor.is_down(route.expert.name) and self.monitor.is_down(route.draft.name))

    @property
    def busy(self) -> int:
        """The number of requests under way, and of audits behind them."""
        return self._running.busy

    def chosen_scores(self) -> dict[str, dict[str, str | None]]:
        """The scores of the routes whose file says ``auto``, and why each was chosen, as JSON values."""
        return {name: asdict(score) for name, score in self._running.current.chosen_scores.items()}

    def routes(self) -> list[str]:
        """The names that clients send as ``model``."""
        return [*self._running.current.routes, *self._running.current.single_routes]

    def outside(self) -> dict[str, dict[str, int]]:
        """The number of requests that were answered outside the games since the start, by route and reason."""
        return outside_counts(self.metrics)

    def live_games(self) -> list[LiveGame]:
        """The live games of all routes."""
        return self._running.current.games()

    def open_games(self) -> list[LiveGame]:
        """The live games, and those that a reload has ended but in which requests or rounds are still open."""
        return [*self.live_games(), *self._retired]

    def losses(self) -> list[LostEntries]:
        """Journals that lost acknowledged entries."""
        return self.store.losses()

    async def refresh(self) -> None:
        """Read what others have done in the games, before they are shown; games of this process need nothing."""

    def status(self) -> GatewayStatus:
        """Where the gateway and all its games stand."""
        running = self._running.current
        routes: dict[str, list[GameStatus]] = {route.name: [] for route, _ in running.all_games()}
        for game in self.live_games():
            routes[game.route.name].append(game.status())
        losses, connections, refused = self.losses(), len(self.connections), self.rejections.counts
        return GatewayStatus(
            routes, losses, connections, refused, self.models(), self.store_status(), self.warnings(),
            self.upkeep.to_json(),
        )  # fmt: skip

    def listed_games(self) -> list[Game]:
        """Every game of the store, also those that have ended."""
        return self.store.games()

    def models(self) -> dict[str, dict[str, Any]]:
        """What is known about each model, by name, as JSON values."""
        found: dict[str, dict[str, Any]] = {}
        for name, opened in self._running.current.models.items():
            found[name] = {"health": self.records[name].health.to_json() | self.monitor.report(name)}
            if isinstance(opened.model, Deployments):
                found[name]["deployments"] = opened.model.report()
        return found

    def warnings(self) -> list[dict[str, Any]]:
        """Settings that do not suit the traffic, as JSON values."""
        routes = self._running.current.routes.values()
        found = [warning for route, _ in routes for warning in warnings_of(route.expert.grader)]
        return found + self.caller_rounds.held.warnings()

    def workers(self) -> dict[str, Any] | None:
        """The processes of this gateway, as JSON values; none if this is the only one."""
        return None

    def shared_games(self) -> list[dict[str, Any]]:
        """The games that this gateway shares with others, as JSON values."""
        return []

    def store_status(self) -> dict[str, Any]:
        """Whether the store works, as JSON values."""
        with suppress(StoreError):
            self._check_store()
        return self.store_record.to_json()

    def _check_store(self) -> None:
        if self.store.failure is not None:
            self.store_record.failed(self.store.failure)
            raise self.store.failure

    def measurements(self) -> str:
        """The metrics in the text format of Prometheus."""
        status = self.status()
        models = {name: self.records[name].health for name in self.config.models}
        warnings = Counter(str(warning["route"]) for warning in status.warnings)
        return prometheus_text(self.metrics, status.routes, self.busy, status.connections, models, warnings=warnings)
