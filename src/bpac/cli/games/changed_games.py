"""Games that are begun again, or begun from others, in the SQLite store of a stopped gateway.

A game ends when a later game of its segment with the same terms has begun. Its journal stays, for audits.
"""

import time
from collections.abc import Container, Sequence
from typing import Any, NamedTuple

from bpac.errors import InputError, StoreError
from bpac.gateway.config.routes.routes import RouteSettings
from bpac.gateway.games.restoring.recorded_scores import recorded_score, with_recorded_score
from bpac.gateway.games.restoring.restoring import folded, has_entries
from bpac.gateway.games.restoring.warm_start import check_takes_history
from bpac.gateway.games.segments import alpha_of_games
from bpac.gateway.games.terms import changes, of_rounds, terms_of
from bpac.routing.router import Router
from bpac.stores import SqliteStore
from bpac.stores.store import Game, Store


class Begun(NamedTuple):
    """A game that was begun.

    Parameters
    ----------
    game: the new game.
    router: its state.
    before: the game that ended with it, if any.
    ended: the state of that game.
    """

    game: Game
    router: Router
    before: Game | None
    ended: Router | None


def numbered(store: Store, number: int) -> Game:
    """The game with a number, or an error that lists the games."""
    found = next((game for game in store.games() if game.number == number), None)
    if found is None:
        there = ", ".join(f"{game.number}: {game.route} {game.segment}".rstrip() for game in store.games()) or "none"
        raise InputError(f"there is no game {number}; there are {there}")
    lost = next((loss for loss in store.losses() if loss.game == number), None)
    if lost is not None:
        raise StoreError(f"game {number} cannot be used: {lost}, and these may be the rounds with losses")
    return found


def current(store: Store, route: str, segment: str) -> Game | None:
    """The latest game of a segment that has begun."""
    games = [game for game in store.games() if (game.route, game.segment) == (route, segment)]
    return next((game for game in reversed(games) if has_entries(store, game)), None)


def going_on(store: Store, route: RouteSettings, segment: str) -> Game | None:
    """The game of a segment that a gateway with these settings would go on with."""
    if route.auto_score and recorded_score(store, route) is None:
        return None
    route = with_recorded_score(store, route)
    terms = terms_of(route, route.new_router(alpha_of_games(route)))
    games = [game for game in store.games() if (game.route, game.segment) == (route.name, segment)]
    same = [game for game in games if not changes(game.terms, terms, route.open_terms)]
    return same[-1] if same and has_entries(store, same[-1]) else None


def ending(store: Store, game: Game, open_terms: Container[str] = ()) -> tuple[Game, str] | None:
    """The game with the same terms that took the place of another one, and why; none if that one is not over."""
    later = [one for one in _after(store, game) if not changes(game.terms, one.terms, open_terms)]
    return (later[0], _why(store, later[0], game)) if later else None


def left_for(store: Store, game: Game) -> str:
    """The terms for which a game was left; empty if it was not. It goes on when its own terms are in force again."""
    later = _after(store, game)
    return "; ".join(map(str, changes(game.terms, later[-1].terms))) if later else ""


def _after(store: Store, game: Game) -> list[Game]:
    """The later games of the same segment."""
    games = store.games()
    return [one for one in games[games.index(game) + 1 :] if (one.route, one.segment) == (game.route, game.segment)]


def _why(store: Store, later: Game, game: Game) -> str:
    if has_entries(store, later) and store.archived(later) is None:
        note = next(iter(store.entries(later))).note
        if note.get("ends") == game.number:
            return str(note.get("why", ""))
        if "history" in note:
            return f"game {later.number} began from {note['history']}"
    return f"game {later.number} began"


def begin_again(store: SqliteStore, route: RouteSettings, segment: str) -> Begun:
    """Begin a new game for a segment, with a threshold of 0; the current one ends.

    Parameters
    ----------
    store: opened with ``commit_each``; no gateway is using it.
    route: the settings of the route.
    segment: the segment; empty if the route is not divided.
    """
    before = going_on(store, route, segment)
    if before is None:
        name = f"{route.name} {segment}".rstrip()
        raise InputError(f"{name} has no game with the terms of this configuration: there is nothing to reset")
    ended = folded(store, before).router
    return _begin(store, route, segment, {"ends": before.number, "why": "reset"}, before, ended)


def check_merge(store: Store, route: RouteSettings, numbers: Sequence[int]) -> list[Game]:
    """The older games that a new one of a route can begin from, or an error that says why it cannot.

    Parameters
    ----------
    store, route: as for ``begin_again``.
    numbers: the older games.
    """
    if len(set(numbers)) < 2 or len(set(numbers)) != len(numbers):
        raise InputError("give the numbers of two or more games, each once")
    if route.models:
        raise InputError(f"{route.name} is a cascade, which has no history: its games cannot be joined")
    check_takes_history(route)
    games = [numbered(store, number) for number in numbers]
    route = with_recorded_score(store, route)
    terms = terms_of(route, route.new_router(alpha_of_games(route)))
    for game in games:
        _check_history(store, game, route, terms)
    return games


def begin_from(store: SqliteStore, route: RouteSettings, segment: str, numbers: Sequence[int]) -> Begun:
    """Begin a new game from the rounds of several older games, each round once. If this raises, nothing changed.

    Parameters
    ----------
    store, route, segment: as for ``begin_again``.
    numbers: the older games.
    """
    games = check_merge(store, route, numbers)
    before = going_on(store, route, segment)
    ended = None if before is None else folded(store, before).router
    return _begin(store, route, segment, merge_note(numbers, before), before, ended, games)


def merge_note(numbers: Sequence[int], before: Game | None) -> dict[str, Any]:
    """The note of a game that begins from others.

    Parameters
    ----------
    numbers: the older games.
    before: the game that ends with it, if any.
    """
    source = "games " + ", ".join(map(str, numbers))
    return {"history": source, **({} if before is None else {"ends": before.number, "why": f"merged from {source}"})}


def feed(router: Router, store: Store, history: Sequence[Game]) -> None:
    """Let a new game learn from the rounds of older ones."""
    for older in history:
        router.warm_start_from(stored.entry for stored in store.entries(older))
    if history and not router.labelled:
        raise InputError("these games have no round that could be learned from")


def _begin(  # noqa: PLR0917
    store: SqliteStore,
    route: RouteSettings,
    segment: str,
    note: dict[str, Any],
    before: Game | None,
    ended: Router | None,
    history: Sequence[Game] = (),
) -> Begun:
    route = with_recorded_score(store, route)
    alpha = alpha_of_games(route)
    terms = terms_of(route, route.new_router(alpha))
    note = {"at": round(time.time(), 3), **note}
    with store.together():
        game = store.open_game(route.name, segment, terms)
        router = route.new_router(alpha, lambda entry: store.append(game, entry, note))
        feed(router, store, history)
    return Begun(game, router, before, ended)


def _check_history(store: Store, game: Game, route: RouteSettings, terms: str) -> None:
    if game.route != route.name:
        raise InputError(f"game {game.number} is of the route {game.route}: its requests are not those of {route.name}")
    differing = of_rounds(changes(game.terms, terms))
    if differing:
        raise InputError(
            f"game {game.number} cannot be used: {'; '.join(map(str, differing))}. Its losses are those of other "
            "models, another score or another loss"
        )
    if has_entries(store, game) and folded(store, game).router.labelled:
        raise InputError(
            f"game {game.number} began from history itself: its rounds may be those of another of these games, and "
            "each counts once"
        )
