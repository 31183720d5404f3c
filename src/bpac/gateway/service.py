"""The gateway without HTTP: routes, their games, and what goes on behind the requests."""

import asyncio
import logging
import time
from collections.abc import Coroutine, Sized
from contextlib import suppress
from typing import Any

from bpac.errors import AlreadyResolved, BpacError, InputError, NotAudited, ObservationError, StoreError
from bpac.gateway.auth.keys import Identity, Role
from bpac.gateway.chat.expert import Auditor
from bpac.gateway.chat.grading import grader_of
from bpac.gateway.chat.request import ChatRequest
from bpac.gateway.chat.response import ChatResponse
from bpac.gateway.chat.route import ServedRoute
from bpac.gateway.chat.upstream import Upstream
from bpac.gateway.config.file import Config
from bpac.gateway.games.decision_ids import read_name
from bpac.gateway.games.live_game import LiveGame
from bpac.gateway.games.segments import Caller, RouteGames
from bpac.gateway.http.bad_request import BadRequest, no_such_decision, no_such_route, stopping
from bpac.gateway.http.disconnects import DisconnectWatch
from bpac.gateway.telemetry.exposition import exposition
from bpac.gateway.telemetry.metrics import Metrics
from bpac.gateway.telemetry.rejections import Rejections
from bpac.gateway.telemetry.stages import Stages
from bpac.gateway.telemetry.traces import NoTraces, OpenTelemetryTraces, Traces
from bpac.models.connections import new_session
from bpac.routing.decision import Decision
from bpac.stores import Store, open_store

log = logging.getLogger("bpac.gateway")

SWEEP_EVERY = 1.0


class Service:
    """All routes of a gateway, from ``start`` to ``stop``.

    Parameters
    ----------
    config: what was configured.
    store: where journals are kept, if not where the configuration says.
    """

    def __init__(self, config: Config, store: Store | None = None) -> None:
        self.config = config
        self.traces: Traces = OpenTelemetryTraces() if config.traces else NoTraces()
        self.metrics = Metrics()
        self.rejections = Rejections(self.metrics)
        # Open connections of callers, where something counts them.
        self.connections: Sized = ()
        # Before anything is opened: what a grader lacks, its operator hears of at once.
        self._graders = {name: grader_of(route) for name, route in config.routes.items()}
        self.store = store if store is not None else open_store(config.store)
        for loss in self.store.losses():
            self.metrics.count("bpac_journal_losses_total", game=str(loss.game))
        self._routes: dict[str, tuple[ServedRoute, RouteGames]] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._answering = 0
        self._stopping = False
        self._sweeper: asyncio.Task[None] | None = None

    @property
    def ready(self) -> bool:
        """Whether requests are answered."""
        return self._sweeper is not None and not self._stopping and self.store.failure is None

    @property
    def busy(self) -> int:
        """Requests under way, and audits behind them."""
        return self._answering + len(self._tasks)

    async def start(self) -> None:
        """Fold the journals and open what is needed to answer."""
        started = time.perf_counter()
        self._session = new_session()
        try:
            self._open_routes()
            await self.store.durable()
        except BaseException:
            await self._session.close()
            raise
        self._sweeper = asyncio.create_task(self._sweep())
        self._warn_of_missing_roles()
        log.info("ready", extra={"seconds": round(time.perf_counter() - started, 3), "routes": list(self._routes)})

    def _warn_of_missing_roles(self) -> None:
        if not self.config.granted(Role.OPERATOR):
            log.warning(
                "no key has the role operator: /v1/status, /metrics and /dashboard are closed to everybody. Add one as "
                "[[gateway.keys]]; bpac status reads the store and works without"
            )
        if not self.config.granted(Role.FEEDBACK):
            for name, route in self.config.routes.items():
                if route.loss["name"] == "external":
                    log.warning(
                        "no key has the role feedback: no loss can be reported for this route, and every round is "
                        "given up at its deadline and counted as loss 1. Add one as [[gateway.keys]]",
                        extra={"route": name},
                    )

    def _open_routes(self) -> None:
        upstreams = {
            name: Upstream(model, self._session, self.traces, self.metrics, self.config.limits)
            for name, model in self.config.models.items()
        }
        for name, settings in self.config.routes.items():
            stages = Stages(self.metrics, name, self.traces)
            auditor = Auditor(upstreams[settings.expert.name], self._graders[name], stages, settings.deadline)
            route = ServedRoute(settings, upstreams[settings.draft.name], auditor, stages, self._spawn)
            self._routes[name] = (route, RouteGames(self.store, settings, self.config.snapshot_every))

    async def stop(self) -> None:
        """Let what is under way come to its end, as long as the configuration allows, and close everything."""
        self._stopping = True
        if self._sweeper is not None:
            self._sweeper.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=self.config.drain)
        if self.store.failure is None:
            for keeper in self.keepers():
                keeper.stop()  # before anything is cut off: what waits for its draft now is what did not end in time
        left = list(self._tasks)
        for task in left:
            task.cancel()
        # What is cut off stays open in the journal, and is charged as loss 1 there.
        await asyncio.gather(*left, return_exceptions=True)
        for route, games in self._routes.values():
            if route.auditor.grader is not None:
                await route.auditor.grader.close()
            if self.store.failure is None:
                for keeper in games:
                    keeper.snapshot()
        await self._session.close()
        with suppress(StoreError):  # said already, to all who asked since
            await self.store.durable()
        await asyncio.to_thread(self.store.close)
        await asyncio.to_thread(self.traces.close)
        log.info("stopped", extra={"cut_off": len(left)})

    async def answer(self, request: ChatRequest, caller: Caller, watch: DisconnectWatch | None = None) -> ChatResponse:
        """Answer a request, or raise what the caller is to hear.

        Parameters
        ----------
        request: what is asked.
        caller: who asks.
        watch: knows whether the caller has left; without one, a request is cancelled because of that or by ``stop``.
        """
        route, games, label = self._route(request.model)
        if self.store.failure is not None:
            raise self.store.failure
        # Before anything is decided: who is turned away here is turned away whatever the coin would have said.
        if self._stopping:
            raise stopping()
        if self.busy >= self.config.max_in_flight:
            self.metrics.count("bpac_turned_away_total", route=route.settings.name)
            raise BadRequest("too many requests under way", 429, code="overloaded", retry_after=1)
        self._answering += 1
        try:
            left = (lambda: watch.left) if watch is not None else (lambda: not self._stopping)
            return await route.answer(request, games.keeper(request, caller, label), left)
        finally:
            self._answering -= 1

    def feedback(self, decision: str, loss: float, identity: Identity) -> None:
        """Take in a loss from outside, or raise ``BadRequest`` with the status that says why not."""
        keeper, step = self.decided(decision, identity)
        try:
            keeper.feedback(step, loss)
        except InputError as error:
            raise BadRequest(str(error), 422, "loss", "out_of_range") from error
        except NotAudited as error:
            raise BadRequest(str(error), 409, "decision", "not_audited") from error
        except AlreadyResolved as error:
            raise BadRequest(str(error), 409, "decision", "already_resolved") from error
        except ObservationError as error:
            raise BadRequest(str(error), 404, "decision", "unknown_decision") from error

    def answers(self, decision: str, identity: Identity) -> dict[str, str]:
        """Both answers of a round that waits for a loss from outside, or ``BadRequest``."""
        keeper, step = self.decided(decision, identity)
        answers = keeper.answers(step)
        if answers is None:
            raise BadRequest("the answers of this decision are not kept", 404, "decision", "no_answers")
        return answers

    def routes(self) -> list[str]:
        """The names that clients ask for."""
        return list(self._routes)

    def keepers(self) -> list[LiveGame]:
        """The games that are played, by route."""
        return [keeper for _, games in self._routes.values() for keeper in games]

    def keeper(self, game: int) -> LiveGame | None:
        """The keeper of the game with that number, if it is played."""
        return next((keeper for keeper in self.keepers() if keeper.game.number == game), None)

    def decided(self, decision: str, identity: Identity) -> tuple[LiveGame, int]:
        """The game and the step that a decision's name stands for, or ``BadRequest``.

        Parameters
        ----------
        decision: its name.
        identity: who asks; it must have been made for them, unless they are operators.
        """
        game, step = read_name(decision, self.store) or (0, 0)
        keeper = self.keeper(game)
        if keeper is None:
            raise no_such_decision()
        if Role.OPERATOR not in identity.roles:
            identity.require_sight(self._owner(keeper, step))
        return keeper, step

    def _owner(self, keeper: LiveGame, step: int) -> object:
        """For whom a decision was made; none if nobody noted it. Who knows its name was served, so it is durable."""
        for (entry, note), _ in self.store.rounds(keeper.game, step + 1, 1):
            if isinstance(entry, Decision) and entry.step == step:
                return note.get("caller")
        return None

    def status(self) -> dict[str, list[dict[str, Any]]]:
        """Where every game stands, by route, as JSON values."""
        return {name: [keeper.summary() for keeper in games] for name, (_, games) in self._routes.items()}

    def losses(self) -> list[dict[str, Any]]:
        """Journals that no longer held what was acknowledged when the store was opened, as JSON values."""
        return [loss._asdict() for loss in self.store.losses()]

    def measurements(self) -> str:
        """The page that Prometheus reads."""
        return exposition(self.metrics, self.status(), self.busy, len(self.connections))

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
        if not task.cancelled() and (error := task.exception()) is not None:
            # The round stays open, and so charged, until its deadline.
            log.error("background task failed", exc_info=error)

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_EVERY)
            try:
                for keeper in self.keepers():
                    keeper.sweep(time.monotonic())
            except BpacError as error:
                log.error("deadlines cannot be kept", exc_info=error)
