"""The gateway without HTTP: its routes, their games, and the tasks behind the requests."""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Sized
from contextlib import suppress
from typing import Any

from bpac.errors import StoreError
from bpac.gateway.auth.keys import Role
from bpac.gateway.chat.expert import Expert
from bpac.gateway.chat.grading import grader_of
from bpac.gateway.chat.request import ChatRequest
from bpac.gateway.chat.response import ChatResponse
from bpac.gateway.chat.route import ServedRoute
from bpac.gateway.chat.upstream import Upstream
from bpac.gateway.config.file import Config
from bpac.gateway.config.models import ModelSettings
from bpac.gateway.config.routes import RouteSettings
from bpac.gateway.games.decisions import Decisions
from bpac.gateway.games.live_game import LiveGame
from bpac.gateway.games.segments import Caller, RouteGames
from bpac.gateway.games.status import GatewayStatus
from bpac.gateway.health.monitor import HealthMonitor
from bpac.gateway.health.opening import open_models
from bpac.gateway.http.bad_request import BadRequest, no_such_route, stopping
from bpac.gateway.telemetry.counters import Metrics
from bpac.gateway.telemetry.prometheus import prometheus_text
from bpac.gateway.telemetry.rejections import Rejections
from bpac.gateway.telemetry.stages import Stages
from bpac.gateway.telemetry.store_failures import StoreRecord
from bpac.gateway.telemetry.traces import NoTraces, OpenTelemetryTraces, Traces
from bpac.gateway.telemetry.upstream_failures import UpstreamRecord
from bpac.models.connections import new_session
from bpac.stores import Store, open_store

log = logging.getLogger("bpac.gateway")

# Seconds between two checks of the deadlines of drafts and outcomes.
SWEEP_EVERY = 1.0


class Service:
    """All routes of a gateway, from ``start`` to ``stop``.

    Parameters
    ----------
    config: the configuration.
    store: where journals are kept (default: the store of the configuration).
    """

    def __init__(self, config: Config, store: Store | None = None) -> None:
        self.config = config
        self.traces: Traces = OpenTelemetryTraces() if config.traces else NoTraces()
        self.metrics = Metrics()
        self.rejections = Rejections(self.metrics)
        # The open connections of callers; the server sets it.
        self.connections: Sized = ()
        # What is known about each model, whatever it is used for.
        self.records = {name: UpstreamRecord(name, self.metrics) for name in config.models}
        # Before the store is opened, so that a missing package of a grader is reported at once.
        self._graders = {
            name: grader_of(route, self.records[route.judge.name] if route.judge else None)
            for name, route in config.routes.items()
        }
        self.store = store if store is not None else open_store(config.store)
        self.store_record = StoreRecord(self.metrics)
        for loss in self.store.losses():
            self.metrics.count("bpac_journal_losses_total", game=str(loss.game))
        self.decisions = Decisions(self.store, self.live_games)
        self.monitor = HealthMonitor(config.probe_timeout)
        self._routes: dict[str, tuple[ServedRoute, RouteGames]] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._answering = 0
        self._stopping = False
        self._sweeper: asyncio.Task[None] | None = None

    @property
    def ready(self) -> bool:
        """Whether requests are answered: the gateway runs, its store works, and not all models are down."""
        running = self._sweeper is not None and not self._stopping and self.store.failure is None
        routes = self.config.routes.values()
        return running and (not routes or any(map(self._can_answer, routes)))

    def _can_answer(self, route: RouteSettings) -> bool:
        # Without its draft a route is answered by its expert, and without its expert accepted drafts are served.
        return not (self.monitor.is_down(route.expert.name) and self.monitor.is_down(route.draft.name))

    @property
    def busy(self) -> int:
        """The number of requests under way, and of audits behind them."""
        return self._answering + len(self._tasks)

    async def start(self) -> None:
        """Restore the games and open what is needed to answer."""
        started = time.perf_counter()
        self._session = new_session()
        try:
            self._open_routes()
            await self.store.durable()
            if self.config.probe:
                await self.monitor.start()
        except BaseException:
            await self.monitor.stop()
            await self._session.close()
            raise
        self._sweeper = asyncio.create_task(self._sweep())
        self._warn_of_missing_roles()
        log.info("ready", extra={"seconds": round(time.perf_counter() - started, 3), "routes": list(self._routes)})

    def _open_routes(self) -> None:
        opened = open_models(self.config, self._new_upstream, self.records, self.metrics)
        self.monitor.watch([server for model in opened.values() for server in model.servers])
        for name, settings in self.config.routes.items():
            stages = Stages(self.metrics, name, self.traces)
            expert = Expert(opened[settings.expert.name].model, self._graders[name], stages, settings.deadline)
            route = ServedRoute(settings, opened[settings.draft.name].model, expert, stages, self._spawn)
            self._routes[name] = (route, RouteGames(self.store, settings, self.config.snapshot_every))

    def _new_upstream(self, settings: ModelSettings, record: UpstreamRecord) -> Upstream:
        return Upstream(settings, self._session, self.traces, record, self.config.limits)

    def _warn_of_missing_roles(self) -> None:
        if not self.config.granted(Role.OPERATOR):
            log.warning(
                "no key has the role operator, so nobody can use /v1/status, /metrics and /dashboard: add a key with "
                "this role as [[gateway.keys]]. The command bpac status needs no key"
            )
        if not self.config.granted(Role.FEEDBACK):
            for name, route in self.config.routes.items():
                if route.loss["name"] == "external":
                    log.warning(
                        "no key has the role feedback, so no loss can be reported for this route, and every round is "
                        "given up at its deadline and counted as loss 1: add a key with this role as [[gateway.keys]]",
                        extra={"route": name},
                    )

    async def stop(self) -> None:
        """Wait for what is under way, as long as the configuration allows, and close everything."""
        self._stopping = True
        await self.monitor.stop()
        if self._sweeper is not None:
            self._sweeper.cancel()
            with suppress(asyncio.CancelledError):  # it may be opening the store
                await self._sweeper
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=self.config.drain)
        if self.store.failure is None:
            for game in self.live_games():
                game.stop()  # before tasks are cancelled: a draft that is awaited now did not come in time
        left = list(self._tasks)
        for task in left:
            task.cancel()
        # The rounds of cancelled tasks stay open in the journal, where they count as loss 1.
        await asyncio.gather(*left, return_exceptions=True)
        for route, games in self._routes.values():
            if route.expert.grader is not None:
                await route.expert.grader.close()
            if self.store.failure is None:
                for game in games:
                    game.journal.snapshot()
        await self._session.close()
        with suppress(StoreError):  # all requests since then have reported it
            await self.store.durable()
        await asyncio.to_thread(self.store.close)
        await asyncio.to_thread(self.traces.close)
        log.info("stopped", extra={"cut_off": len(left)})

    async def answer(self, request: ChatRequest, caller: Caller, caller_left: Callable[[], bool]) -> ChatResponse:
        """The response to a request; an error that is raised is what the caller gets.

        Parameters
        ----------
        request: what is asked.
        caller: who asks.
        caller_left: asked when the request is cancelled: whether its caller left; otherwise the gateway stops.
        """
        route, games, label = self._route(request.model)
        if self.store.failure is not None:
            self.store_record.failed(self.store.failure)
            raise self.store.failure
        # Before anything is decided, so that refusing a request does not depend on what its coin would have said.
        if self._stopping:
            raise stopping()
        if self.busy >= self.config.max_in_flight:
            self.metrics.count("bpac_turned_away_total", route=route.settings.name)
            raise BadRequest("too many requests in progress, try again later", 429, code="overloaded", retry_after=1)
        self._answering += 1
        try:
            return await route.answer(request, games.game(request, caller, label), caller_left)
        finally:
            self._answering -= 1

    def routes(self) -> list[str]:
        """The names that clients send as ``model``."""
        return list(self._routes)

    def live_games(self) -> list[LiveGame]:
        """The live games of all routes."""
        return [game for _, games in self._routes.values() for game in games]

    def status(self) -> GatewayStatus:
        """Where the gateway and all its games stand."""
        routes = {name: [game.status() for game in games] for name, (_, games) in self._routes.items()}
        models = {
            name: {"health": record.health.to_json() | self.monitor.report(name)}
            for name, record in self.records.items()
        }
        losses, connections, refused = self.store.losses(), len(self.connections), self.rejections.counts
        return GatewayStatus(routes, losses, connections, refused, models, self.store_status())

    def store_status(self) -> dict[str, Any]:
        """Whether the store works, as JSON values."""
        if self.store.failure is not None:
            self.store_record.failed(self.store.failure)
        return self.store_record.to_json()

    def measurements(self) -> str:
        """The metrics in the text format of Prometheus."""
        status = self.status()
        models = {name: record.health for name, record in self.records.items()}
        return prometheus_text(self.metrics, status.routes, self.busy, status.connections, models)

    def _route(self, model: str) -> tuple[ServedRoute, RouteGames, str]:
        name, _, label = model.partition(":")
        for candidate, rest in ((model, ""), (name, label)):
            found = self._routes.get(candidate)
            if found is not None and (not rest or found[0].settings.segment_by == "model"):
                return *found, rest
        raise no_such_route(model)

    def _spawn(self, work: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: "asyncio.Task[Any]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None and not isinstance(error, StoreError):
            # A failure of the store was logged when it happened.
            # The round stays open, and so charged, until its deadline.
            log.error("background task failed", exc_info=error)

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_EVERY)
            if self.store.failure is not None:
                await self._reopen_store(self.store.failure)
                continue
            for game in self.live_games():
                try:
                    game.sweep(time.monotonic())
                except StoreError:  # it was logged, and the next sweep opens the store again
                    break
                except Exception as error:  # whatever it is, the deadlines of all other games are kept
                    log.error(
                        "could not check the deadlines of open requests",
                        extra={"route": game.route.name},
                        exc_info=error,
                    )

    async def _reopen_store(self, failure: StoreError) -> None:
        """Go on with a store that has failed, if it can be written again and proves that nothing was lost.

        The games are restored from it as at a start. Requests under way belong to the games before the failure: they
        cannot be recorded, get an error, and count as a restart would count them.
        """
        self.store_record.failed(failure)
        if not self.store_record.due:
            return
        opened: Store | None = None
        opening = asyncio.create_task(asyncio.to_thread(self.store.reopened))
        try:
            opened = await asyncio.shield(opening)
            games = {
                name: RouteGames(opened, route.settings, self.config.snapshot_every)
                for name, (route, _) in self._routes.items()
            }
            await opened.durable()
        except asyncio.CancelledError:  # the gateway stops
            with suppress(StoreError):
                await asyncio.to_thread((opened or await opening).close)
            raise
        except Exception as error:  # whatever it is, it is tried again
            if opened is not None:
                await asyncio.to_thread(opened.close)
            if isinstance(error, StoreError):
                self.store_record.still_fails(error)
            else:
                log.error("the games cannot be restored from the store", exc_info=error)
                self.store_record.still_fails(StoreError(f"the games cannot be restored ({type(error).__name__})"))
            return
        self.store = opened
        self.decisions = Decisions(opened, self.live_games)
        self._routes = {name: (route, games[name]) for name, (route, _) in self._routes.items()}
        self.store_record.works_again()
