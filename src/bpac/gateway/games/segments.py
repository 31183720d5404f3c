"""The games of a route: one for each segment of its traffic, found again after a restart."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from bpac.gateway.chat.request import ChatRequest
from bpac.gateway.config.routes import RouteSettings
from bpac.gateway.games.live_game import LiveGame
from bpac.routing.router import Router
from bpac.routing.segments import Segments
from bpac.stores.store import Store

# Of requests that do not say which segment they belong to.
UNNAMED = "(none)"
LONGEST_NAME = 200


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks.

    Parameters
    ----------
    segment: the name of the caller's segment, where API keys divide the traffic; empty on an open gateway.
    headers: of the request, their names in lower case.
    """

    segment: str = ""
    headers: Sequence[tuple[bytes, bytes]] = field(default=(), repr=False)

    def header(self, name: str) -> str | None:
        """The value of a header, if it is there."""
        wanted = name.lower().encode("latin-1", "replace")
        return next((value.decode("latin-1") for key, value in self.headers if key == wanted), None)


class RouteGames:
    """The keepers of a route.

    Parameters
    ----------
    store: where journals are kept.
    route: what is promised.
    snapshot_every: entries between two snapshots.
    """

    def __init__(self, store: Store, route: RouteSettings, snapshot_every: int) -> None:
        self._store = store
        self._route = route
        self._snapshot_every = snapshot_every
        self._keepers: dict[int, LiveGame] = {}
        self._segments: Segments | None = None
        if route.segment_by is None:
            self._start("", route.alpha)
            return
        self._segments = Segments(self._start, route.alpha, alpha_scope=route.alpha_scope, most=route.most_segments)
        for game in store.games():
            if game.route == route.name and game.segment:
                self._segments.router(game.segment)

    def __iter__(self) -> Iterator[LiveGame]:
        return iter(self._keepers.values())

    def keeper(self, request: ChatRequest, caller: Caller, label: str) -> LiveGame:
        """The keeper of the game that a request belongs to.

        Parameters
        ----------
        request: what is asked.
        caller: who asks.
        label: what stood after the route's name.
        """
        if self._segments is None:
            return next(iter(self._keepers.values()))
        router = self._segments.router(_segment(self._route.segment_by or "", request, caller, label))
        return self._keepers[id(router)]

    def _start(self, segment: str, alpha: float) -> Router:
        keeper = LiveGame(self._store, self._route, segment, alpha, self._snapshot_every)
        self._keepers[id(keeper.router)] = keeper
        return keeper.router


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
    # A name that is too long to keep is still one segment, not part of another's.
    return value if len(value) <= LONGEST_NAME else hashlib.sha256(value.encode()).hexdigest()
