"""All fronts of a gateway, as the owner of the journals sees them, and what they have in common."""

import asyncio
import logging
import os
from collections import Counter, defaultdict
from collections.abc import Coroutine, Iterator
from typing import TYPE_CHECKING, Any

from bpac import __version__
from bpac.gateway.budgets.budgets import Budgets
from bpac.gateway.games.live_game import LiveGame
from bpac.gateway.games.segments import RouteGames
from bpac.gateway.running_config import RunningConfig
from bpac.gateway.telemetry.metrics.counters import Metrics
from bpac.gateway.workers.ends import ProcessEnds
from bpac.gateway.workers.owner.session import FrontSession
from bpac.gateway.workers.owner.telemetry import FrontTelemetry

if TYPE_CHECKING:
    from bpac.gateway.workers.owner.service import OwnerService

log = logging.getLogger("bpac.gateway")

# Seconds between two looks at the circuit breakers, whose state is passed on to the fronts.
LOOK_EVERY = 0.2


class Fronts:
    """The sessions of all fronts.

    Parameters
    ----------
    service: the owner's service, with the games, the budgets and the models' health.
    wanted: how many fronts there should be.
    """

    def __init__(self, service: "OwnerService", wanted: int) -> None:
        self._service = service
        self.wanted = wanted
        self._sessions: set[FrontSession] = set()
        self._configs: dict[int, tuple[RunningConfig, bytes]] = {}
        self._generation = 0
        # Open games by number; it is forgotten once a second, because games are opened, ended and restored.
        self._games: dict[int, LiveGame] = {}
        self.telemetry = FrontTelemetry(service)
        self._tasks: set[asyncio.Task[Any]] = set()
        self._ends: defaultdict[int, ProcessEnds] = defaultdict(ProcessEnds)

    def __iter__(self) -> Iterator[FrontSession]:
        return iter(self._sessions)

    @property
    def metrics(self) -> Metrics:
        """Counts for ``/metrics``."""
        return self._service.metrics

    @property
    def budgets(self) -> Budgets:
        """What every tenant has used today."""
        return self._service.budgets

    def new_session(self) -> FrontSession:
        """The session of a front that has just connected."""
        return FrontSession(self)

    def spawn(self, work: Coroutine[Any, Any, Any]) -> None:
        """Start a task."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def watch(self) -> None:
        """Pass the state of the circuit breakers on, for as long as this runs."""
        await self._service.upkeep.repeat(LOOK_EVERY, {"breakers": self._pass_breakers_on})

    async def _pass_breakers_on(self) -> None:
        self._games.clear()
        for label, state in self.telemetry.changed_breakers():
            for session in self._sessions:
                session.link.send([0, "breaker", label, state])

    # Configurations.

    def use(self, running: RunningConfig, text: bytes) -> None:
        """Have all fronts use a configuration from now on.

        Parameters
        ----------
        running: the configuration at work.
        text: its file.
        """
        self._generation += 1
        self._configs[self._generation] = (running, text)
        self._games.clear()
        for session in self._sessions:
            session.link.send([0, "reload", self._generation, text, _scores(running)])
        self._forget_configs()

    def welcome(self) -> dict[str, Any]:
        """What a front that has connected needs to know."""
        running, text = self._configs[self._generation]
        return {
            "version": __version__,
            "generation": self._generation,
            "config": text,
            "scores": _scores(running),
            "secret": self._service.store.secret,
            "breakers": self.telemetry.open_breakers(),
        }

    def moved(self, session: FrontSession, generation: int) -> None:
        """A front answers no request with an earlier configuration any more."""
        session.generation = generation
        self._forget_configs()

    def _forget_configs(self) -> None:
        used = Counter(session.generation for session in self._sessions)
        for number, (running, _) in list(self._configs.items()):
            running.fronts = used[number]
            if not running.fronts and number != self._generation:
                del self._configs[number]

    # Games.

    def game(self, generation: int, route: str, segment: str) -> LiveGame | None:
        """The game of a segment under a configuration; a new one for the first request of a segment."""
        running, _ = self._configs.get(generation, (None, b""))
        found = running.routes.get(route) if running is not None else None
        if found is None or not isinstance(found[1], RouteGames):
            return None
        self._service.check_store()
        game = found[1].of_segment(segment)
        self._service.keep_open(game)
        self._games.clear()
        return game

    def open_game(self, number: int) -> LiveGame | None:
        """An open game."""
        game = self._games.get(number)
        if game is None:
            self._games = {game.number: game for game in self._service.open_games()}
            game = self._games.get(number)
        return game

    def expert_calls(self, model: str) -> int:
        """The calls of a model that are under way in all fronts."""
        return sum(session.games.calls.get(model, 0) for session in self._sessions)

    # Fronts that come and go.

    def joined(self, session: FrontSession) -> None:
        """A front has connected."""
        self._sessions.add(session)
        session.generation = self._generation
        self._forget_configs()

    def left(self, session: FrontSession, reason: str, tickets: int, rounds: int) -> None:
        """A front's connection has ended.

        Parameters
        ----------
        session: its session.
        reason: why.
        tickets, rounds: what it had under way.
        """
        if session not in self._sessions:
            return
        self._sessions.discard(session)
        self._forget_configs()
        if tickets or rounds or not session.stops:
            self.metrics.count("bpac_workers_lost_total", process="front")
            self._ends[session.index].add()
            known = {"front": session.index, "reason": reason, "requests": tickets, "audits": rounds}
            log.warning("a front process was lost: what it had under way counts as cut off", extra=known)

    async def all_left(self, seconds: float) -> None:
        """Wait until no front is connected, but not longer than that."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while self._sessions and loop.time() < until:
            await asyncio.sleep(0.02)
        for session in list(self._sessions):
            session.link.close("the gateway stops")
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=5.0)

    @property
    def busy(self) -> int:
        """Requests under way in the fronts, and audits behind them, as of their last reports."""
        return sum(int(session.report.get("busy", 0)) for session in self._sessions)

    @property
    def warnings(self) -> list[dict[str, Any]]:
        """Settings that do not suit the traffic: for each route what the front says that saw most of it."""
        found: dict[str, dict[str, Any]] = {}
        for session in self._sessions:
            for warning in session.report.get("warnings", ()):
                known = found.get(warning["route"])
                if known is None or known["count"] < warning["count"]:
                    found[warning["route"]] = warning
        return list(found.values())

    def to_json(self) -> dict[str, Any]:
        """The processes as JSON values."""
        fronts = [
            {
                "front": session.index,
                "pid": session.pid,
                "connections": session.report.get("connections", 0),
                "in_flight": session.report.get("busy", 0),
                "drafting": session.games.tickets,
                "audits": session.games.rounds,
                "current_configuration": session.generation == self._generation,
            }
            for session in sorted(self._sessions, key=lambda session: session.index)
        ]
        lost = self.metrics.value("bpac_workers_lost_total", process="front")
        return {
            "wanted": self.wanted,
            "fronts": fronts,
            "lost": lost,
            "lost_fronts": [{"front": index, **ends.to_json()} for index, ends in sorted(self._ends.items())],
            "owner": {"pid": os.getpid(), **self._service.ends.to_json()},
        }


def _scores(running: RunningConfig) -> dict[str, str]:
    """The scores that were chosen where the file says ``auto``: all processes must have the same."""
    return {name: score.name for name, score in running.chosen_scores.items()}
