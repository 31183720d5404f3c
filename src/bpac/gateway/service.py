"""The gateway without HTTP: its routes, their games, and the tasks behind the requests."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sized
from contextlib import contextmanager, suppress
from typing import Any

from bpac.errors import SettingsError, StoreError
from bpac.gateway.auth.keys import Role
from bpac.gateway.budgets.budgets import Budgets
from bpac.gateway.budgets.file import BudgetsFile
from bpac.gateway.chat.expert import Expert
from bpac.gateway.chat.force import Force
from bpac.gateway.chat.grading import grader_of
from bpac.gateway.chat.outside import FORCED, SINGLE_MODEL, AnsweredBy, OutsideAnswers, outside_counts
from bpac.gateway.chat.raw_upstream import RawUpstream
from bpac.gateway.chat.request import ChatRequest
from bpac.gateway.chat.response import ChatResponse
from bpac.gateway.chat.route import ServedRoute
from bpac.gateway.chat.single_route import SingleRoute
from bpac.gateway.chat.upstream import Upstream
from bpac.gateway.config.file import Config
from bpac.gateway.games.decisions import Decisions
from bpac.gateway.games.live_game import LiveGame
from bpac.gateway.games.retired import RetiredGames
from bpac.gateway.games.segments import Caller, RouteGames
from bpac.gateway.games.status import GatewayStatus
from bpac.gateway.http.bad_request import BadRequest, no_such_route, stopping
from bpac.gateway.reloading import Reloads
from bpac.gateway.running_config import RunningConfig, RunningConfigs
from bpac.gateway.telemetry.counters import Metrics
from bpac.gateway.telemetry.prometheus import prometheus_text
from bpac.gateway.telemetry.rejections import Rejections
from bpac.gateway.telemetry.stages import Stages
from bpac.gateway.telemetry.traces import NoTraces, OpenTelemetryTraces, Traces
from bpac.models.connections import new_session
from bpac.stores import Store, open_store

log = logging.getLogger("bpac.gateway")

# Seconds between two checks of the deadlines of drafts and outcomes.
SWEEP_EVERY = 1.0
# The endpoints of model servers, below /v1, that requests are passed through to unread.
PASSED_THROUGH = ("/embeddings", "/completions")
# The keys of [gateway] that are fixed while a gateway runs.
FIXED = ("listen", "store", "traces")


class Service:
    """All routes of a gateway, from ``start`` to ``stop``.

    Parameters
    ----------
    config: the configuration.
    store: where journals are kept (default: the store of the configuration).
    """

    def __init__(self, config: Config, store: Store | None = None) -> None:
        self.traces: Traces = OpenTelemetryTraces() if config.traces else NoTraces()
        self.metrics = Metrics()
        self.rejections = Rejections(self.metrics)
        # The open connections of callers; the server sets it.
        self.connections: Sized = ()
        # The reloads of the configuration; the server sets it.
        self.reloads: Reloads | None = None
        # Before the store is opened, so that a missing package of a grader is reported at once.
        graders = {name: grader_of(route) for name, route in config.routes.items()}
        self.store = store if store is not None else open_store(config.store)
        self.budgets = Budgets()
        self._budgets_file = BudgetsFile(config.store if store is None else "memory://")
        self._budgets_file.load(self.budgets)
        for loss in self.store.losses():
            self.metrics.count("bpac_journal_losses_total", game=str(loss.game))
        self.decisions = Decisions(self.store, self.open_games)
        self._running = RunningConfigs(RunningConfig(config, graders))
        self._retired = RetiredGames()
        self._stopping = False
        self._sweeper: asyncio.Task[None] | None = None

    @property
    def config(self) -> Config:
        """The configuration of new requests."""
        return self._running.current.config

    @property
    def ready(self) -> bool:
        """Whether requests are answered."""
        return self._sweeper is not None and not self._stopping and self.store.failure is None

    @property
    def busy(self) -> int:
        """The number of requests under way, and of audits behind them."""
        return self._running.busy

    async def start(self) -> None:
        """Restore the games and open what is needed to answer."""
        started = time.perf_counter()
        self._session = new_session()
        try:
            self._open_models(self._running.current)
            self._open_single_routes(self._running.current)
            self._open_routes(self._running.current)
            await self.store.durable()
        except BaseException:
            await self._session.close()
            raise
        self._sweeper = asyncio.create_task(self._sweep())
        self._warn_of_missing_roles()
        log.info("ready", extra={"seconds": round(time.perf_counter() - started, 3), "routes": self.routes()})

    def _open_models(self, running: RunningConfig) -> None:
        limits = running.config.limits
        for name, model in running.config.models.items():
            known = self._running.current.upstreams.get(name)
            if known is not None and known.settings == model and self.config.limits == limits:
                running.upstreams[name] = known  # what is known about the model stays known
            else:
                running.upstreams[name] = Upstream(model, self._session, self.traces, self.metrics, limits)

    def _open_single_routes(self, running: RunningConfig) -> None:
        for name, settings in running.config.single_routes.items():
            model = running.upstreams[settings.expert.name]
            raw = {
                path: RawUpstream(
                    settings.expert, self._session, self.traces, self.metrics, running.config.limits, path=path
                )
                for path in PASSED_THROUGH
            }
            chats = OutsideAnswers(name, model, "expert", SINGLE_MODEL, settings.deadline, self.metrics, running.spawn)
            running.single_routes[name] = SingleRoute(chats, raw)

    def _open_routes(self, running: RunningConfig) -> None:
        upstreams = running.upstreams
        for name, settings in running.config.routes.items():
            stages = Stages(self.metrics, name, self.traces)
            expert = Expert(upstreams[settings.expert.name], running.graders[name], stages, settings.deadline)
            route = ServedRoute(settings, upstreams[settings.draft.name], expert, stages, running.spawn)
            games = RouteGames(self.store, settings, running.config.snapshot_every, self.open_games)
            running.routes[name] = (route, games)
            models: dict[AnsweredBy, Upstream] = {"draft": route.draft_model, "expert": expert.model}
            running.forced[name] = {
                which: OutsideAnswers(name, model, which, FORCED, settings.deadline, self.metrics, running.spawn)
                for which, model in models.items()
            }

    async def reload(self, config: Config) -> None:
        """Answer new requests with another configuration; if this raises, nothing has changed.

        Requests under way finish with the configuration they began with. Games whose terms are equal continue.

        Parameters
        ----------
        config: the new configuration.
        """
        for key in FIXED:
            if getattr(config, key) != getattr(self.config, key):
                raise SettingsError(f"gateway.{key} cannot change while the gateway runs: restart it")
        if not self.ready:
            raise self.store.failure or SettingsError("the gateway is starting or stopping")
        graders = await self._running.graders_for(config)
        running = RunningConfig(config, graders)
        try:
            self._open_models(running)
            self._open_single_routes(running)
            # A game may be read from the store again, which has to contain all of it.
            await self.store.durable()
            if self._stopping:
                raise stopping()
            # Nothing waits from here on, so no request sees a part of the change.
            self._open_routes(running)
        except BaseException:
            self._running.current.take_back_games()
            await self._running.close_graders(running)
            raise
        before = self._running.replace(running)
        self._retired.replace(before.games(), running.games())
        self._warn_of_missing_roles()

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
        if self._sweeper is not None:
            self._sweeper.cancel()
        if tasks := self._running.tasks():
            await asyncio.wait(tasks, timeout=self.config.drain)
        if self.store.failure is None:
            for game in self.open_games():
                game.stop()  # before tasks are cancelled: a draft that is awaited now did not come in time
        left = self._running.tasks()
        for task in left:
            task.cancel()
        # The rounds of cancelled tasks stay open in the journal, where they count as loss 1.
        await asyncio.gather(*left, return_exceptions=True)
        await self._running.close()
        if self.store.failure is None:
            for game in self.open_games():
                game.journal.snapshot()
        await self._session.close()
        with suppress(StoreError):  # all requests since then have reported it
            await self.store.durable()
        await self._budgets_file.save(self.budgets)
        await asyncio.to_thread(self.store.close)
        await asyncio.to_thread(self.traces.close)
        log.info("stopped", extra={"cut_off": len(left)})

    async def answer(
        self, request: ChatRequest, caller: Caller, caller_left: Callable[[], bool], force: Force | None = None
    ) -> ChatResponse:
        """The response to a request; an error that is raised is what the caller gets.

        Parameters
        ----------
        request: what is asked.
        caller: who asks.
        caller_left: asked when the request is cancelled: whether its caller left; otherwise the gateway stops.
        force: the model that the caller wants to answer; none to have it decided.
        """
        running = self._running.current
        single = running.single_routes.get(request.model)
        if single is not None:
            if force is not None and force.model != "expert":
                raise BadRequest(
                    f"the route {request.model} has one model: leave out x-bpac-force", param="x-bpac-force"
                )
            with self._admitted(running, request.model):
                return await single.chats.answer(request)
        route, games, label = self._route(request.model)
        name = route.settings.name
        if force is not None and not (force.allowed or route.settings.allow_force):
            raise force.not_allowed()
        with self._admitted(running, name):
            if force is not None:
                return await running.forced[name][force.model].answer(request)
            if self.store.failure is not None:
                raise self.store.failure
            return await route.answer(request, games.game(request, caller, label), caller_left)

    async def pass_through(self, path: str, body: Mapping[str, Any]) -> ChatResponse:
        """The response to a request that is not a chat; an error that is raised is what the caller gets.

        Parameters
        ----------
        path: the endpoint below ``/v1``.
        body: the request.
        """
        running, name = self._running.current, body.get("model")
        if not isinstance(name, str) or not name:
            raise BadRequest("model is missing: /v1/models lists the routes", param="model")
        single = running.single_routes.get(name)
        if single is None:
            if name in running.routes:
                message = f"the route {name!r} decides between two models, for chats only: use a route with one model"
                raise BadRequest(message, 400, "model", "not_a_single_route")
            raise no_such_route(name)
        with self._admitted(running, name):
            return await single.pass_through(path, body)

    @contextmanager
    def _admitted(self, running: RunningConfig, route: str) -> Iterator[None]:
        """Count a request that is being answered, or refuse it before anything of it is known."""
        # Before anything is decided, so that refusing a request does not depend on what its coin would have said.
        if self._stopping:
            raise stopping()
        if self.busy >= running.config.max_in_flight:
            self.metrics.count("bpac_turned_away_total", route=route)
            raise BadRequest("too many requests in progress, try again later", 429, code="overloaded", retry_after=1)
        running.answering += 1
        try:
            yield
        finally:
            running.answering -= 1

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

    def status(self) -> GatewayStatus:
        """Where the gateway and all its games stand."""
        routes = {name: [game.status() for game in games] for name, (_, games) in self._running.current.routes.items()}
        return GatewayStatus(routes, self.store.losses(), len(self.connections), self.rejections.counts)

    def measurements(self) -> str:
        """The metrics in the text format of Prometheus."""
        status = self.status()
        return prometheus_text(self.metrics, status.routes, self.busy, status.connections)

    def _route(self, model: str) -> tuple[ServedRoute, RouteGames, str]:
        name, _, label = model.partition(":")
        for candidate, rest in ((model, ""), (name, label)):
            found = self._running.current.routes.get(candidate)
            if found is not None and (not rest or found[0].settings.segment_by == "model"):
                return *found, rest
        raise no_such_route(model)

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_EVERY)
            for game in self.open_games():
                try:
                    game.sweep(time.monotonic())
                except Exception as error:  # whatever it is, the deadlines of all other games are kept
                    log.error(
                        "could not check the deadlines of open requests",
                        extra={"route": game.route.name},
                        exc_info=error,
                    )
            await self._budgets_file.save(self.budgets)
            try:
                if await self._running.close_idle() and self.store.failure is None:
                    self._retired.end_idle()
            except Exception as error:  # nothing of it is needed to answer requests
                log.error("could not close an earlier configuration", exc_info=error)
