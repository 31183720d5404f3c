"""The games of a route: one for each segment of its traffic, restored after a restart."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from bpac.gateway.chat.request import ChatRequest
from bpac.gateway.config.routes import RouteSettings
from bpac.gateway.games.live_game import LiveGame
from bpac.routing.router import Router
from bpac.routing.segments import OTHERS, Segments
from bpac.stores.store import Store

# The segment of requests that do not name one.
UNNAMED = "(none)"
LONGEST_NAME = 200


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sends a request, as far as its segment depends on it.

    Parameters
    ----------
    segment: the segment of the caller's API key; empty on an open gateway.
    headers: of the request, with their names in lower case.
    """

    segment: str = ""
    headers: Sequence[tuple[bytes, bytes]] = field(default=(), repr=False)

    def header(self, name: str) -> str | None:
        """The value of a header; none if it is missing."""
        wanted = name.lower().encode("latin-1", "replace")
        return next((value.decode("latin-1") for key, value in self.headers if key == wanted), None)


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
        self._segments: Segments | None = None
        if route.segment_by is None:
            self._start("", route.alpha)
            return
        self._segments = Segments(self._start, route.alpha, alpha_scope=route.alpha_scope, most=route.most_segments)
        for game in store.games():
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
        segment = _segment(self._route.segment_by or "", request, caller, label)
        self._segments.router(segment)
        return self._games.get(segment) or self._games[OTHERS]

    def _start(self, segment: str, alpha: float) -> Router:
        game = self._open_already(segment, alpha)
        if game is not None:
            game.go_on_under(self._route, self._snapshot_every)
        else:
            game = LiveGame(self._store, self._route, segment, alpha, self._snapshot_every)
        self._games[segment] = game
        return game.router

    def _open_already(self, segment: str, alpha: float) -> LiveGame | None:
        """The open game of a segment with the terms of this route; none if there is none."""
        terms = self._route.terms(self._route.new_router(alpha))
        wanted = (self._route.name, segment, terms)
        return next((game for game in self._running() if _identity(game) == wanted), None)


def _identity(game: LiveGame) -> tuple[str, str, str]:
    kept = game.journal.game
    return kept.route, kept.segment, kept.terms


def _segment(by: str, request: ChatRequest, caller: Caller, label: str) -> str:
    kind, _, name = by.partition(":")
    value: Any
    if kind == "header":
        value = caller.header(name)
    elif kind == "metadata":
        metadata = request.body.get("metadata")
        value = metadata.get(name) if isinstance(metadata, dict) else None
    elif kind == "user":
        value = request.body.get("user")
    elif kind == "model":
        value = label
    else:
        value = caller.segment
    if not isinstance(value, str) or not value:
        return UNNAMED
    # A name that is too long to keep is still a segment of its own.
    return value if len(value) <= LONGEST_NAME else hashlib.sha256(value.encode()).hexdigest()
