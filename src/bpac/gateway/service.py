"""The gateway without HTTP: its routes, their games, and the tasks behind the requests."""

import asyncio
import logging
import time
from contextlib import suppress

from bpac.errors import SettingsError, StoreError
from bpac.gateway.auth.keys import Identity
from bpac.gateway.auto_scores import ScoreChooser
from bpac.gateway.budgets.budgets import Budgets
from bpac.gateway.budgets.file import BudgetsFile
from bpac.gateway.config.file import Config
from bpac.gateway.config.routes.routes import RouteSettings
from bpac.gateway.deciding.caller_rounds import CallerRounds
from bpac.gateway.dispatcher import Dispatcher
from bpac.gateway.games.restoring.retired import RetiredGames
from bpac.gateway.games.restoring.store_recovery import reopened
from bpac.gateway.games.rounds.decisions import Decisions
from bpac.gateway.games.shown.config_warnings import warn_of_config
from bpac.gateway.health.monitor import HealthMonitor
from bpac.gateway.http.bad_request import stopping
from bpac.gateway.http.endpoints.metered import RequestCharge
from bpac.gateway.opening import Opener, games_in, games_of, open_decide_routes
from bpac.gateway.reloading import Reloads
from bpac.gateway.running_config import RunningConfig, RunningConfigs, new_graders
from bpac.gateway.service_view import ServiceView
from bpac.gateway.telemetry.failures.prompt_features import MissingPromptFeatures
from bpac.gateway.telemetry.failures.rejections import Rejections
from bpac.gateway.telemetry.failures.store_failures import StoreRecord
from bpac.gateway.telemetry.failures.upkeep import Upkeep
from bpac.gateway.telemetry.failures.upstream_failures import UpstreamRecords
from bpac.gateway.telemetry.metrics.counters import Metrics
from bpac.gateway.telemetry.tracing.traces import NoTraces, OpenTelemetryTraces, Traces
from bpac.models.connections import new_session
from bpac.models.prompts import PromptFeatures
from bpac.stores import Store, open_store
from bpac.stores.store import Game

log = logging.getLogger("bpac.gateway")

# Seconds between two checks of the deadlines of drafts and outcomes.
SWEEP_EVERY = 1.0
# The keys of [gateway] that are fixed while a gateway runs.
FIXED = ("listen", "store", "store_outage", "traces")


class Service(ServiceView):
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
        self.connections = ()  # the server sets it
        # The reloads of the configuration; the server sets it.
        self.reloads: Reloads | None = None
        self.records = UpstreamRecords(self.metrics)
        # Before the store is opened, so that a missing package of a grader is reported at once.
        graders = new_graders(config)
        self.store = store if store is not None else open_store(config.store)
        self.store_record = StoreRecord(self.metrics)
        self.upkeep = Upkeep(self.metrics)
        self.budgets = Budgets()
        self._budgets_file = BudgetsFile(config.store if store is None else "memory://")
        self._budgets_file.load(self.budgets)
        for loss in self.store.losses():
            self.metrics.count("bpac_journal_losses_total", game=str(loss.game))
        self.decisions = Decisions(self.store, self.open_games)
        self.monitor = HealthMonitor()
        self._running = RunningConfigs(RunningConfig(config, graders))
        self._retired = RetiredGames()
        self.dispatcher = Dispatcher(self._running, self.metrics, self._check_store, self.traces)
        self.caller_rounds = CallerRounds(
            self._running, self.metrics, lambda: self.store.secret, self.dispatcher.check_open
        )
        self._prompts = PromptFeatures(MissingPromptFeatures(self.metrics).add)
        self._sweeper: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Restore the games and open what is needed to answer."""
        started = time.perf_counter()
        self._session = new_session()
        try:
            await self._choose_scores(self._running.current)
            self._opener = Opener(self._session, self.traces, self.metrics, self.records, self._prompts)
            self._opener.open_models(self._running.current, {})
            self._opener.open_single_routes(self._running.current)
            await self._find_games(self._running.current)
            self._open_routes(self._running.current)
            self._count_changed_scores()
            await self.store.durable()
            await self._watch_models()
            await self._join_games()
        except BaseException:
            await self.monitor.stop()
            await self._session.close()
            await self._prompts.close()
            raise
        work = {
            "store": self._reopen_store,
            "deadlines": self._check_deadlines,
            "budgets": lambda: self._budgets_file.save(self.budgets),
            "configurations": self._close_idle,
        }
        self._sweeper = asyncio.create_task(self.upkeep.repeat(SWEEP_EVERY, work))
        warn_of_config(self.config)
        log.info("ready", extra={"seconds": round(time.perf_counter() - started, 3), "routes": self.routes()})

    async def _choose_scores(self, running: RunningConfig) -> None:
        """Put a score in the place of ``auto``, before anything depends on it."""
        chooser = ScoreChooser(running.config, self._session, self.store, self._agreed_score)
        running.config, running.chosen_scores = await chooser.chosen()

    def _count_changed_scores(self) -> None:
        """Count the routes whose score is another one than before, because drafts cannot have that any more."""
        for name, score in self._running.current.chosen_scores.items():
            self.metrics.count("bpac_score_changes_total", by=int(score.instead_of is not None), route=name)

    async def _agreed_score(self, route: RouteSettings, latest: Game | None, score: str) -> str:
        """The score that all gateways take which choose one for the same game."""
        return score

    async def _find_games(self, running: RunningConfig) -> None:
        """Find what ``_open_routes`` needs, where that takes long; games of this process need nothing."""

    async def _join_games(self) -> None:
        """Take part in the games that were opened, before the gateway is ready; games of this process need nothing."""

    def _open_routes(self, running: RunningConfig) -> None:
        open_games = games_of(running, self.store, self.open_games)
        self._opener.open_routes(running, open_games)
        open_decide_routes(running, open_games)

    async def _watch_models(self) -> None:
        servers = [server for model in self._running.current.models.values() for server in model.servers]
        self.monitor.watch(servers, self.config.probe_timeout)
        if self.config.probe:
            await self.monitor.start()

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
        if not self._works:
            raise self.store.failure or SettingsError("the gateway is starting or stopping")
        graders = await self._running.graders_for(config)
        running = RunningConfig(config, graders)
        try:
            await self._choose_scores(running)
            self._opener.open_models(running, self._running.current.models)
            self._opener.open_single_routes(running)
            await self._find_games(running)
            # A game may be read from the store again, which has to contain all of it.
            await self.store.durable()
            if self.dispatcher.stopping:
                raise stopping()
            # Nothing waits from here on, so no request sees a part of the change.
            self._open_routes(running)
        except BaseException:
            self._running.current.take_back_games()
            await self._running.close_graders(running)
            raise
        before = self._running.replace(running)
        self._count_changed_scores()
        self._retired.replace(before.games(), running.games())
        warn_of_config(self.config)
        await self._watch_models()

    async def admit(self, identity: Identity, size: int) -> RequestCharge | None:
        """Count a request against the limits of its key, or raise ``BadRequest`` if one is reached.

        Parameters
        ----------
        identity: who asks.
        size: bytes of the request's body.
        """
        return self.budgets.admit(identity, size)

    async def check_graders(self, config: Config) -> None:
        """Raise what is wrong with the graders of another configuration, such as a missing package."""
        graders = await self._running.graders_for(config)
        await self._running.close_graders(RunningConfig(config, graders))

    async def stop(self) -> None:
        """Wait for what is under way, as long as the configuration allows, and close everything."""
        self.dispatcher.stopping = True
        await self.monitor.stop()
        if self._sweeper is not None:
            self._sweeper.cancel()
            with suppress(asyncio.CancelledError):  # it may be opening the store
                await self._sweeper
        if tasks := self._running.tasks():
            await asyncio.wait(tasks, timeout=self.config.drain)
        await self._end_games()  # before tasks are cancelled: a draft that is awaited now did not come in time
        left = self._running.tasks()
        for task in left:
            task.cancel()
        # The rounds of cancelled tasks stay open in the journal, where they count as loss 1.
        await asyncio.gather(*left, return_exceptions=True)
        await self._running.close()
        self._save_games()
        await self._session.close()
        await self._prompts.close()
        with suppress(StoreError):  # all requests since then have reported it
            await self.store.durable()
        try:
            await self._budgets_file.save(self.budgets)
        except Exception as error:  # whatever it is, the store is closed
            self.upkeep.failed("budgets", error)
        await asyncio.to_thread(self.store.close)
        await asyncio.to_thread(self.traces.close)
        log.info("stopped", extra={"cut_off": len(left)})

    async def _end_games(self) -> None:
        """Write to the journals that no request is under way; requests that are under way count as cut off."""
        if self.store.failure is None:
            for game in self.open_games():
                game.stop()

    def _save_games(self) -> None:
        if self.store.failure is None:
            for game in self.open_games():
                game.journal.snapshot()

    async def _check_deadlines(self) -> None:
        if self.store.failure is not None:
            return
        self.caller_rounds.held.sweep(time.monotonic())
        failure: Exception | None = None
        for game in self.open_games():
            try:
                game.sweep(time.monotonic())
            except StoreError:  # it was logged, and the store is opened again
                break
            except Exception as error:  # whatever it is, the deadlines of all other games are kept
                error.add_note(f"in route {game.route.name}")
                failure = error
        if failure is not None:
            raise failure

    async def _close_idle(self) -> None:
        if await self._running.close_idle() and self.store.failure is None:
            self._retired.end_idle()

    async def _reopen_store(self) -> None:
        """Go on with a store that has failed, if it can be written again and proves that nothing was lost."""
        failure = self.store.failure
        if failure is None:
            return
        self.store_record.failed(failure)
        if not self.store_record.due:
            return
        running = self._running.current
        try:
            opened, games = await reopened(self.store, lambda store: games_in(store, running))
        except StoreError as error:
            self.store_record.still_fails(error)
            return
        if running is not self._running.current:  # a reload came in between; the next sweep tries again
            await asyncio.to_thread(opened.close)
            return
        self.store = opened
        self.decisions = Decisions(opened, self.open_games)
        running.routes = {name: (route, games[name]) for name, (route, _) in running.routes.items()}
        running.decide_routes = {name: games[name] for name in running.decide_routes}
        # Games that a reload had ended stay as the journal has them: their open rounds count as losses there.
        self._retired = RetiredGames()
        self.store_record.works_again()
