"""A front without HTTP: it answers requests with drafts and experts, and everything about games it asks the owner.

1. The configuration comes from the owner, so that all processes have the same. Limits on the number of connections and
   of requests in progress are divided among the fronts.
2. When the owner has a new configuration, a front answers new requests with it, and finishes those that have begun.
3. Once a second, and at the end, a front reports what it has counted, so that ``/metrics`` is one picture.
"""

import asyncio
import logging
import os
import tomllib
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

from bpac import __version__
from bpac.errors import InputError, StoreError
from bpac.gateway.auth.keys import Identity
from bpac.gateway.config.file import Config
from bpac.gateway.config.routes.auto_score import with_scores
from bpac.gateway.config.routes.routes import RouteSettings
from bpac.gateway.dispatcher import Dispatcher
from bpac.gateway.http.endpoints.metered import RequestCharge
from bpac.gateway.opening import Opener
from bpac.gateway.running_config import RunningConfig, RunningConfigs, new_graders
from bpac.gateway.telemetry.failures.prompt_features import MissingPromptFeatures
from bpac.gateway.telemetry.failures.rejections import Rejections
from bpac.gateway.telemetry.failures.upkeep import Upkeep
from bpac.gateway.telemetry.metrics.counters import Metrics
from bpac.gateway.telemetry.prose_watch import warnings_of
from bpac.gateway.telemetry.tracing.traces import NoTraces, OpenTelemetryTraces, Traces
from bpac.gateway.workers.front.limits import RemoteCharge, share
from bpac.gateway.workers.front.monitor import ForwardedRecords, FrontMonitor
from bpac.gateway.workers.front.owner_link import OwnerLink
from bpac.gateway.workers.front.remote_desk import RemoteDesk
from bpac.gateway.workers.front.remote_games import Generation, RemoteGames
from bpac.gateway.workers.front.reports import Reports
from bpac.models.connections import new_session
from bpac.models.prompts import PromptFeatures

log = logging.getLogger("bpac.gateway")

REPORT_EVERY = 1.0
# The stage of a request in which the owner decides.
OWNER = "owner"


def _nothing() -> None:
    pass


class ConfigSource(NamedTuple):
    """What the owner sends of a configuration.

    Parameters
    ----------
    text: the file.
    scores: the scores that the owner has chosen where the file says ``auto``, by route.
    """

    text: bytes
    scores: dict[str, str]


class FrontService:
    """The routes of a front, from ``start`` to ``stop``.

    Parameters
    ----------
    path: the Unix socket of the owner.
    index: which front this is, from 0.
    fronts: how many there are.
    """

    def __init__(self, path: str, index: int, fronts: int) -> None:
        self._index = index
        self._fronts = fronts
        self.metrics = Metrics()
        self.rejections = Rejections(self.metrics)
        self.link = OwnerLink(path, lambda: [index, os.getpid()], self._welcomed, self._told)
        self.records = ForwardedRecords(self.metrics, self.link.tell)
        self.monitor = FrontMonitor(self.link.tell)
        self.connections = 0
        self.traces: Traces = NoTraces()
        self.secret = b""
        # Called after each change of the configuration.
        self.changed: Callable[[], None] = _nothing
        self._reports = Reports(self.metrics, self.rejections)
        self._prompts = PromptFeatures(MissingPromptFeatures(self.metrics).add)
        self._source: ConfigSource | None = None
        self._running: RunningConfigs | None = None
        self._generations: dict[int, Generation] = {}
        self._generation = Generation(0)
        self._reloading: set[asyncio.Task[None]] = set()
        self._reload_lock = asyncio.Lock()
        self._reporter: asyncio.Task[None] | None = None
        self.dispatcher: Dispatcher

    @property
    def config(self) -> Config:
        """The configuration of new requests."""
        return self.running.current.config

    @property
    def running(self) -> RunningConfigs:
        """The configuration at work."""
        if self._running is None:
            raise RuntimeError("the front has not started")
        return self._running

    async def start(self) -> None:
        """Connect to the owner, and open what its configuration needs."""
        self._session = new_session()
        try:
            await self.link.start()
        except BaseException:
            await self._session.close()
            await self._prompts.close()
            raise
        work = {"reports": self._report, "configurations": self._close_idle}
        self._reporter = asyncio.create_task(Upkeep(self.metrics).repeat(REPORT_EVERY, work))

    async def _welcomed(self, welcome: dict[str, Any]) -> None:
        """The owner has answered, for the first time or again."""
        if welcome.get("version") != __version__:
            # The package was replaced while the gateway runs, and the owner is newer: so will be the next front.
            raise InputError("the owner has another version of the package")
        number, source = welcome["generation"], ConfigSource(welcome["config"], welcome["scores"])
        self.secret = welcome["secret"]
        self._reports.begin()
        async with self._reload_lock:
            if self._running is None:
                self._open_first(source, number)
            elif source != self._source:
                await self._use(source, number)
            else:
                for generation in self._generations.values():
                    generation.number = 0
                self._generation.number = number
                for running in self.running:
                    for _, games in running.routes.values():
                        if isinstance(games, RemoteGames):
                            games.forget()
        self.monitor.know(welcome["breakers"])

    def _read(self, source: ConfigSource) -> Config:
        config = Config.read(tomllib.loads(source.text.decode()))
        return share(with_scores(config, source.scores), self._fronts)

    def _open_first(self, source: ConfigSource, number: int) -> None:
        config = self._read(source)
        self.traces = OpenTelemetryTraces() if config.traces else NoTraces()
        running = RunningConfig(config, new_graders(config))
        self._opener = Opener(
            self._session, self.traces, self.metrics, self.records, self._prompts, self.records.of_deployment
        )
        self._open(running, {}, number)
        self._running = RunningConfigs(running)
        self.dispatcher = Dispatcher(self._running, self.metrics, lambda: None, self.traces)
        self._source = source
        self._watch(running)

    def _open(self, running: RunningConfig, models: dict[str, Any], number: int) -> None:
        self._opener.open_models(running, models)
        self._opener.open_single_routes(running)
        generation = Generation(number)
        self._opener.open_routes(running, partial(self._games, generation))
        self._generations = {**self._generations, id(running): generation}
        self._generation = generation

    def _games(self, generation: Generation, route: RouteSettings) -> RemoteGames:
        timed = partial(self.metrics.time, OWNER, route.name)
        return RemoteGames(self.link, route, generation, opened=self._opened, timed=timed)

    def _opened(self, desk: RemoteDesk) -> None:
        if desk.embeds_prompts:
            self._prompts.preload()

    def _watch(self, running: RunningConfig) -> None:
        servers = [server for model in running.models.values() for server in model.servers]
        self.monitor.watch(servers, running.config.probe_timeout)

    async def _use(self, source: ConfigSource, number: int) -> None:
        """Answer new requests with another configuration."""
        config = self._read(source)
        running = RunningConfig(config, await self.running.graders_for(config))
        before = self._generation
        try:
            self._open(running, self.running.current.models, number)
        except BaseException:
            self._generation = before
            await self.running.close_graders(running)
            raise
        self.running.replace(running)
        self._source = source
        self._watch(running)
        self.changed()

    def _told(self, kind: str, values: list[Any]) -> None:
        if kind == "breaker":
            self.monitor.changed(*values)
        elif kind == "reload":
            task = asyncio.create_task(self._reload(*values))
            self._reloading.add(task)
            task.add_done_callback(self._reloading.discard)

    async def _reload(self, number: int, text: bytes, scores: dict[str, str]) -> None:
        try:
            async with self._reload_lock:
                await self._use(ConfigSource(text, scores), number)
        except Exception as error:  # whatever it is, the front goes on with what it has
            log.error(
                "a front could not use the new configuration: it answers with the old one; restart the gateway",
                extra={"front": self._index},
                exc_info=error,
            )

    async def admit(self, identity: Identity, size: int) -> RequestCharge | None:
        """Count a request against the limits of its key, or raise ``BadRequest`` if one is reached."""
        if identity.limits is None:
            return None
        number, estimate = await self.link.ask(
            "admit",
            identity.owner,
            list(identity.limits),
            size,
            late=lambda reply: self.link.tell("refund", reply[0]),
        )
        return RemoteCharge(self.link, number, estimate)

    async def _report(self) -> None:
        self.report()

    async def _close_idle(self) -> None:
        if await self.running.close_idle() and self._generation.number:
            self._generations = {id(self.running.current): self._generation}
            self.link.tell("moved", self._generation.number)

    async def reported(self) -> None:
        """Report what was counted, and wait until the owner knows it; a page that it makes then has it, too."""
        if self.link.is_up:
            with suppress(StoreError):
                await self.link.ask("counted", self._report_now())

    def report(self) -> None:
        """Report what was counted since the last report."""
        if self.link.is_up:
            self.link.tell("counted", self._report_now())

    def _report_now(self) -> dict[str, Any]:
        answered = sorted(self.records.answered)
        self.records.answered.clear()
        routes = self.running.current.routes.values()
        return self._reports.take() | {
            "answered": answered,
            "busy": self.running.busy,
            "connections": self.connections,
            "warnings": [warning for route, _ in routes for warning in warnings_of(route.expert.grader)],
        }

    async def stop(self) -> None:
        """Wait for what is under way, as long as the configuration allows, and close everything."""
        if self._running is None:
            return
        self.dispatcher.stopping = True
        if tasks := self.running.tasks():
            await asyncio.wait(tasks, timeout=self.config.drain)
        left = self.running.tasks()
        for task in left:
            task.cancel()
        # What they had under way counts as cut off when the connection to the owner ends.
        await asyncio.gather(*left, return_exceptions=True)
        if self._reporter is not None:
            self._reporter.cancel()
            with suppress(asyncio.CancelledError):
                await self._reporter
        self.report()
        self.link.tell("bye")
        await self.link.stop()
        await self.running.close()
        await self._session.close()
        await self._prompts.close()
        await asyncio.to_thread(self.traces.close)
        log.info("front stopped", extra={"front": self._index, "cut_off": len(left)})
