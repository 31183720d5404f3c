"""The gateway under one configuration: its models, routes and graders, and the requests that are answered with them.

A reload makes another one. Requests that have begun finish with the objects of the configuration they began with, and
these are closed when the last such request has ended, its audit included.
"""

import asyncio
import logging
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass, field
from typing import Any

from bpac.errors import StoreError
from bpac.gateway.auto_scores import ChosenScore
from bpac.gateway.chat.experts.grading import Grader, grader_of
from bpac.gateway.chat.outside import OutsideAnswers
from bpac.gateway.chat.routes.route import ServedRoute
from bpac.gateway.chat.routes.single_route import SingleRoute
from bpac.gateway.config.file import Config
from bpac.gateway.config.routes.routes import RouteSettings
from bpac.gateway.games.desk import RouteDesks
from bpac.gateway.games.live_game import LiveGame
from bpac.gateway.games.segments import RouteGames
from bpac.gateway.health.opening import OpenModel
from bpac.models.prompts import PROMPT_FEATURES, check_installed

log = logging.getLogger("bpac.gateway")


@dataclass(slots=True)
class RunningConfig:
    """A configuration at work.

    Parameters
    ----------
    config: the configuration.
    graders: of the routes without a judge, by route; none if losses are reported from outside.
    models: the models, by name.
    routes: the routes with their games, by name.
    forced: for each of them, what answers requests that are forced to a model.
    single_routes: the routes with one model, by name.
    decide_routes: the games of the routes that decide only, by name.
    answering: the number of requests whose response is not known yet.
    fronts: the number of other processes that answer requests with it.
    tasks: what goes on behind the requests: expert calls, audits, streamed drafts.
    chosen_scores: the scores of the routes whose file says ``auto``, by route.
    """

    config: Config
    graders: dict[str, Grader | None]
    models: dict[str, OpenModel] = field(default_factory=dict)
    routes: dict[str, tuple[ServedRoute, RouteDesks]] = field(default_factory=dict)
    forced: dict[str, dict[str, OutsideAnswers]] = field(default_factory=dict)
    single_routes: dict[str, SingleRoute] = field(default_factory=dict)
    decide_routes: dict[str, RouteDesks] = field(default_factory=dict)
    answering: int = 0
    fronts: int = 0
    tasks: set["asyncio.Task[Any]"] = field(default_factory=set)
    chosen_scores: dict[str, ChosenScore] = field(default_factory=dict)

    @property
    def busy(self) -> int:
        """The number of requests under way, and of audits behind them."""
        return self.answering + len(self.tasks)

    def games(self) -> list[LiveGame]:
        """The live games of all routes."""
        return [game for _, games in self._local_games() for game in games]

    def all_games(self) -> Iterator[tuple[RouteSettings, RouteDesks]]:
        """The settings and the games of every route that has a promise."""
        yield from ((route.settings, games) for route, games in self.routes.values())
        yield from ((self.config.decide_routes[name], games) for name, games in self.decide_routes.items())

    def _local_games(self) -> Iterator[tuple[RouteSettings, RouteGames]]:
        """The routes whose games are in this process."""
        return ((route, games) for route, games in self.all_games() if isinstance(games, RouteGames))

    def take_back_games(self) -> None:
        """Have the games continue under this configuration: one that was to replace it cannot be used."""
        for route, games in self._local_games():
            for game in games:
                game.go_on_under(route, self.config.snapshot_every)

    def spawn(self, work: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
        """Start a task that outlives its request."""
        task = asyncio.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: "asyncio.Task[Any]") -> None:
        self.tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None and not isinstance(error, StoreError):
            # A failure of the store was logged when it happened.
            # The round stays open, and so charged, until its deadline.
            log.error("background task failed", exc_info=error)

    def grader_like(self, name: str, other: Config) -> tuple[bool, Grader | None]:
        """Whether a route of another configuration is graded as here, and the grader if it is.

        Parameters
        ----------
        name: the name of the route.
        other: the other configuration.
        """
        ours, theirs = self.config.routes.get(name), other.routes[name]
        same = ours is not None and ours.loss == theirs.loss
        return same, self.graders[name] if same else None


def new_graders(config: Config) -> dict[str, Grader | None]:
    """The graders of the routes without a judge, by route; a judge is one of the models, which are opened later."""
    check_embeddings(config)
    return {name: grader_of(route) for name, route in config.routes.items() if route.judge is None}


def check_embeddings(config: Config) -> None:
    """Raise ``MissingExtra`` if a route learns from embeddings of prompts and the packages are missing."""
    if any(route.learned and PROMPT_FEATURES[0] in route.learned.features for route in config.routes.values()):
        check_installed()


class RunningConfigs:
    """The configuration of new requests, and earlier ones with which requests are still being answered.

    Parameters
    ----------
    current: the configuration to start with.
    """

    def __init__(self, current: RunningConfig) -> None:
        self.current = current
        self._earlier: list[RunningConfig] = []

    def __iter__(self) -> Iterator[RunningConfig]:
        return iter((self.current, *self._earlier))

    @property
    def busy(self) -> int:
        """The number of requests under way, and of audits behind them."""
        return sum(running.busy for running in self)

    def tasks(self) -> list["asyncio.Task[Any]"]:
        """What goes on behind the requests."""
        return [task for running in self for task in running.tasks]

    def replace(self, running: RunningConfig) -> RunningConfig:
        """Answer new requests with another configuration, and return the one before."""
        before, self.current = self.current, running
        self._earlier.append(before)
        return before

    async def graders_for(self, config: Config) -> dict[str, Grader | None]:
        """The graders of the routes without a judge; those whose settings are the same are used again."""
        check_embeddings(config)
        graders: dict[str, Grader | None] = {}
        for name, route in config.routes.items():
            if route.judge is not None:
                continue
            same, grader = self.current.grader_like(name, config)
            # In a thread: it may load a model.
            graders[name] = grader if same else await asyncio.to_thread(grader_of, route)
        return graders

    async def close_graders(self, running: RunningConfig) -> None:
        """Close the graders of a configuration that no other configuration uses."""
        used = {id(grader) for other in self if other is not running for grader in other.graders.values()}
        for grader in running.graders.values():
            if grader is not None and id(grader) not in used:
                await grader.close()

    async def close_idle(self) -> bool:
        """Close the earlier configurations with which no request is being answered; true if none is left."""
        for running in [running for running in self._earlier if not running.busy and not running.fronts]:
            self._earlier.remove(running)
            await self.close_graders(running)
        return not self._earlier

    async def close(self) -> None:
        """Close all of them."""
        while self._earlier:
            await self.close_graders(self._earlier.pop())
        await self.close_graders(self.current)
