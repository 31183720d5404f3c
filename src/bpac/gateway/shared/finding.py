"""Finding the game of a segment in Redis. These functions wait for Redis: while requests are answered, in a thread.

A route may have a limited number of games, at all gateways together: with ``alpha_scope = "all"`` each has an equal
share of alpha, so that one more would break the promise. So the limit is about the games that are listed in Redis, and
is checked again in the moment in which one is listed.
"""

import logging
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from bpac.gateway.config.routes.routes import RouteSettings
from bpac.gateway.games.restoring.restoring import rounds_before
from bpac.gateway.games.terms import changes, terms_of
from bpac.routing.segments import OTHERS, alpha_of_each, place_of
from bpac.stores.redis.store import NoRoom, RedisStore
from bpac.stores.store import Game

log = logging.getLogger("bpac.gateway")


class FoundGame(NamedTuple):
    """A game of a route.

    Parameters
    ----------
    kept: the game in the store. Its segment is another one than was asked for if there is no room for more.
    alpha: the probability with which the promise may fail in it.
    rounds_before: rounds of the longest earlier game of the same segment.
    listed: the segments that have games of their own.
    """

    kept: Game
    alpha: float
    rounds_before: int
    listed: list[str]


def alpha_of(route: RouteSettings) -> float:
    """The probability with which the promise may fail in one game of a route."""
    return alpha_of_each(route.alpha, route.alpha_scope, route.most_segments) if route.segment_by else route.alpha


def known_place(route: RouteSettings, segment: str, listed: Sequence[str]) -> str:
    """The segment in whose game a segment plays, as far as the list tells; itself while there is room for more.

    Parameters
    ----------
    route, segment: the settings of the route, and the segment.
    listed: the segments that have games of their own.
    """
    is_full = route.segment_by is not None and len(listed) >= route.most_segments - 1
    return place_of(segment, listed, route.most_segments) if is_full else segment


def find_games(store: RedisStore, route: RouteSettings) -> list[FoundGame]:
    """The games that a route has; one that is new if it is not divided and has none that can go on.

    Parameters
    ----------
    store: the list of games.
    route: the settings of the route.
    """
    segments, listed = [""], list[str]()
    if route.segment_by is not None:
        in_order = sorted(store.games(), key=lambda game: game.number)
        segments = [game.segment for game in in_order if game.route == route.name and game.segment]
    found: dict[str, FoundGame] = {}
    for segment in dict.fromkeys(segments):
        if known_place(route, segment, listed) not in found:
            one = find_game(store, route, segment, alpha_of(route))
            found[one.kept.segment], listed = one, one.listed
    return list(found.values())


def find_game(store: RedisStore, route: RouteSettings, segment: str, alpha: float) -> FoundGame:
    """The game of a segment with the terms of a route; a new one if there is none that can go on.

    Parameters
    ----------
    store: the list of games.
    route, segment: the settings of the route, and the segment; empty if the route is not divided.
    alpha: the probability with which the promise may fail in one game.
    """
    terms = terms_of(route, route.new_router(alpha))
    while True:
        try:
            kept = current_shared_game(store, route, _place(store.games(), route, segment), terms)
        except NoRoom:  # another gateway has opened the last one that there was room for
            continue
        return FoundGame(kept, alpha, rounds_before(store, kept), listed_segments(store.games(), route))


def listed_segments(games: Iterable[Game], route: RouteSettings) -> list[str]:
    """The segments of a route that have games of their own: the first ones, as many as there may be."""
    in_order = sorted(games, key=lambda game: game.number)
    segments = [game.segment for game in in_order if game.route == route.name and game.segment not in ("", OTHERS)]
    return list(dict.fromkeys(segments))[: route.most_segments - 1]


def _place(games: Iterable[Game], route: RouteSettings, segment: str) -> str:
    """The segment in whose game a segment plays."""
    return place_of(segment, listed_segments(games, route), route.most_segments) if segment else ""


def current_shared_game(store: RedisStore, route: RouteSettings, segment: str, terms: str) -> Game:
    """The latest game of a segment with these terms that can go on, or a new one; ``NoRoom`` if there may be no more.

    Parameters
    ----------
    store: the list of games.
    route, segment: the route and the segment.
    terms: what the promise is about; a game with other terms does not go on.
    """
    games = [game for game in store.games() if (game.route, game.segment) == (route.name, segment)]
    found = next((game for game in reversed(games) if not changes(game.terms, terms, route.open_terms)), None)
    if found is None or store.is_over(found):
        if games and found is None:
            why = "; ".join(map(str, changes(games[-1].terms, terms, route.open_terms)))
            log.warning("terms changed: a new game begins (%s)", why, extra={"route": route.name, "segment": segment})
        return store.open_game(
            route.name, segment, terms, has_room=lambda games: _place(games, route, segment) == segment
        )
    if found is not games[-1]:
        store.resume(found)
        log.warning("terms changed: game %d, which has these terms, goes on", found.number, extra={"route": route.name})
    return found
