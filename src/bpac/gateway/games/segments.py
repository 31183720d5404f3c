"""The games of a route: one for each segment of its traffic, restored after a restart."""

import hashlib
import logging
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from bpac.gateway.chat.request import ChatRequest
from bpac.gateway.config.routes import RouteSettings
from bpac.gateway.config.secrets import ApiKey
from bpac.gateway.games.live_game import LiveGame
from bpac.gateway.games.terms import changes, terms_of
from bpac.routing.learning.learned_score import LearnedScore
from bpac.routing.learning.shared_scores import SharedScores
from bpac.routing.router import Router
from bpac.routing.segments import OTHERS, Segments
from bpac.stores.store import Store

log = logging.getLogger("bpac.gateway")

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
        """The value of a header, in UTF-8 or else in Latin-1; none if it is missing."""
        wanted = name.lower().encode("latin-1", "replace")
        value = next((value for key, value in self.headers if key == wanted), None)
        if value is None:
            return None
        try:
            return value.decode()
        except UnicodeDecodeError:
            return value.decode("latin-1")


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
        segment = _segment(self._route.segment_by or "", request, caller, label)
        self._segments.router(segment)
        return self._games.get(segment) or self._games[OTHERS]

    def task(self, request: ChatRequest, caller: Caller, label: str) -> str:
        """The task of a request, as ``task_by`` names it; empty if it names none."""
        by = self._route.task_by
        task = _segment(by, request, caller, label) if by is not None else UNNAMED
        return "" if task == UNNAMED else task

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
        terms = terms_of(self._route, self._route.new_router(alpha))
        for game in self._running():
            kept = game.journal.game
            if (kept.route, kept.segment) != (self._route.name, segment) or changes(
                kept.terms, terms, self._route.open_terms
            ):
                continue
            games = [one for one in self._store.games() if (one.route, one.segment) == (kept.route, kept.segment)]
            if games[-1] != kept:
                self._store.resume(kept)
            return game
        return None


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
    value = normalized(value)
    # A name that is too long to keep is still a segment of its own.
    return value if len(value) <= LONGEST_NAME else hashlib.sha256(value.encode()).hexdigest()


def normalized(name: str) -> str:
    """A name as it is kept: accents may be written in two ways that look the same.

    >>> normalized("Mu\u0308nchen") == "M\u00fcnchen"
    True
    """
    # Half of a surrogate pair is not text that can be kept.
    return unicodedata.normalize("NFC", name).encode("utf-8", "replace").decode()


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
