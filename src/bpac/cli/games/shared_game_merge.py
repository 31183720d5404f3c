"""A game in Redis that begins from the rounds of older ones, while no gateway plays its segment."""

import time
from collections.abc import Sequence

from bpac.cli.games.changed_games import Begun, check_merge, feed, going_on, merge_note
from bpac.cli.games.move_places import RedisPlace
from bpac.gateway.config.routes.routes import RouteSettings
from bpac.gateway.games.restoring.restoring import folded
from bpac.gateway.games.segments import alpha_of_games
from bpac.gateway.games.terms import terms_of
from bpac.routing.journal.entries import Entry
from bpac.stores.encoding import encode
from bpac.stores.sqlite.writing.statements import entry_text
from bpac.stores.store import Game
from bpac.stores.whole_game import WholeGame, WrittenEntry


def begin_shared_from(place: RedisPlace, route: RouteSettings, segment: str, numbers: Sequence[int]) -> Begun:
    """Begin a new game from the rounds of several older games, each round once. If this raises, nothing changed.

    Parameters
    ----------
    place: the games in Redis.
    route: the settings of the route.
    segment: the segment; empty if the route is not divided.
    numbers: the older games.
    """
    from bpac.stores.redis.at_rest import check_at_rest  # noqa: PLC0415  # redis-py is optional

    store, alpha = place.store, alpha_of_games(route)
    place.listed()  # if another game begins from here on, this one does not
    history = check_merge(store, route, numbers)
    before = going_on(store, route, segment)
    for game in {*history, *([] if before is None else [before])}:
        check_at_rest(store, game)
    ended = None if before is None else folded(store, before).router
    entries: list[Entry] = []
    router = route.new_router(alpha, entries.append)
    feed(router, store, history)
    note = encode({"at": round(time.time(), 3), **merge_note(numbers, before)})
    written = (WrittenEntry(entry_text(entry), note) for entry in entries)
    new = Game(store.reserve(), route.name, segment, terms_of(route, router))
    place.adopt(WholeGame(new, None, written, [], [], None))
    return Begun(new, router, before, ended)
