"""The games of a route: one for each segment of its traffic, restored after a restart."""

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator

from bpac.gateway.chat.request import ChatRequest
from bpac.gateway.config.routes.routes import RouteSettings
from bpac.gateway.config.secrets import ApiKey
from bpac.gateway.games.live_game import LiveGame
from bpac.gateway.games.local_desk import LocalDesk
from bpac.gateway.games.segment_names import Caller, segment_of, task_of
from bpac.gateway.games.terms import changes, terms_of
from bpac.routing.learning.learned_score import LearnedScore
from bpac.routing.learning.shared_scores import SharedScores
from bpac.routing.router import Router
from bpac.routing.segments import OTHERS, Segments
from bpac.stores.store import Store

log = logging.getLogger("bpac.gateway")


class RouteGames:
    """The live games of a route, by segment.

    Parameters
    ----------
    store: where journals are kept.
    route: the settings of the route.
    snapshot_every: entries between two snapshots.
    running: gives all games that this process has open (default: none). One with the terms of this route goes on,
        because a second one on the same journal would count every round twice.
    """

    def __init__(
        self,
        store: Store,
        route: RouteSettings,
        snapshot_every: int,
        running: Callable[[], Iterable[LiveGame]] = tuple,
    ) -> None:
        self._store = store
        self._running = running
        self._route = route
        self._snapshot_every = snapshot_every
        self._games: dict[str, LiveGame] = {}
        # What segments learn together. Games that began with other settings learn apart, and some not at all.
        self._shared: dict[LearnedScore, SharedScores] = defaultdict(SharedScores)
        self._segments: Segments | None = None
        if route.segment_by is None:
            self._start("", route.alpha)
            return
        self._segments = Segments(
            self._start,
            route.alpha,
            alpha_scope=route.alpha_scope,
            most=route.most_segments,
        )
        # In the order of their numbers: games that go on change their place among the others.
        for game in sorted(store.games(), key=lambda game: game.number):
            if game.route == route.name and game.segment:
                self._segments.router(game.segment)

    def __iter__(self) -> Iterator[LiveGame]:
        return iter(self._games.values())

    def game(self, request: ChatRequest, caller: Caller, label: str) -> LiveGame:
        """The game that a request belongs to; a new one for the first request of a segment.

        Parameters
        ----------
        request: what is asked.
        caller: who asks.
        label: what follows the route's name and a colon in the request's ``model``.
        """
        if self._segments is None:
            return self._games[""]
        return self.of_segment(segment_of(self._route.segment_by or "", request, caller, label))

    def of_segment(self, segment: str) -> LiveGame:
        """The game of a segment; a new one if it has none yet and there may be more."""
        if self._segments is None:
            return self._games[""]
        self._segments.router(segment)
        return self._games.get(segment) or self._games[OTHERS]

    async def desk(self, request: ChatRequest, caller: Caller, label: str) -> LocalDesk:
        """The same game, as chat requests use it."""
        return self.game(request, caller, label).desk

    def desks(self) -> Iterator[LocalDesk]:
        """The games that are open, as chat requests use them."""
        return (game.desk for game in self)

    def task(self, request: ChatRequest, caller: Caller, label: str) -> str:
        """The task of a request, as ``task_by`` names it; empty if it names none."""
        return task_of(self._route, request, caller, label)

    def _start(self, segment: str, alpha: float) -> Router:
        game = self._open_already(segment, alpha)
        if game is not None:
            game.go_on_under(self._route, self._snapshot_every)
        else:
            game = LiveGame(self._store, self._route, segment, alpha, self._snapshot_every)
        self._games[segment] = game
        learned = game.router.settings.policy.learned
        if self._route.segment_by is not None and learned is not None:
            game.router.share_scores(self._shared[learned])
        return game.router

    def _open_already(self, segment: str, alpha: float) -> LiveGame | None:
        """The open game of a segment with the terms of this route; none if there is none."""
        route = self._route.name
        # The segment first: most games are of another one, and there may be thousands.
        same_name = [game for game in self._running() if game.segment == segment and game.journal.game.route == route]
        if not same_name:
            return None
        terms = terms_of(self._route, self._route.new_router(alpha))
        for game in same_name:
            kept = game.journal.game
            if changes(kept.terms, terms, self._route.open_terms):
                continue
            games = [one for one in self._store.games() if one.segment == segment and one.route == route]
            if games[-1] != kept:
                self._store.resume(kept)
            return game
        return None


def alpha_of_games(route: RouteSettings) -> float:
    """The probability with which the promise may fail in each game of a route."""
    shared = route.segment_by is not None and route.alpha_scope == "all"
    return route.alpha / (route.most_segments if shared else 1)


def warn_of_unnamed_keys(routes: Iterable[RouteSettings], api_keys: Iterable[ApiKey]) -> None:
    """Warn of segments that are named after a hash of their key, and so begin anew when the key is rotated."""
    unnamed = sum(not key.variable for key in api_keys)
    for route in routes:
        if route.segment_by == "api_key" and unnamed:
            log.warning(
                "%d of the api_keys have no name, so their segments begin anew with a threshold of 0 when the keys are "
                "rotated: give each a name in [[gateway.keys]], or write it as env:NAME",
                unnamed,
                extra={"route": route.name},
            )
