"""The scores that games have begun with, for routes whose file says ``score = "auto"``."""

from contextlib import suppress

from bpac.errors import SettingsError
from bpac.gateway.config.routes.auto_score import CANDIDATES, NOT_CHOSEN, with_score
from bpac.gateway.config.routes.routes import RouteSettings
from bpac.gateway.games.terms import changes, of_rounds, terms_of
from bpac.stores.store import Game, Store


def recorded_score(store: Store, route: RouteSettings) -> tuple[str, Game] | None:
    """The score of the latest game of a route that is about the same models and loss, and that game.

    Parameters
    ----------
    store: where games are.
    route: the route, whose score is to be chosen.
    """
    terms: dict[str, str] = {}
    for score in CANDIDATES:
        with suppress(SettingsError):  # no game can be about a score that the route cannot have
            wanted = with_score(route, score)
            terms[score] = terms_of(wanted, wanted.new_router())
    for game in reversed(store.games()):
        if game.route == route.name:
            for score, expected in terms.items():
                if not of_rounds(changes(game.terms, expected, route.open_terms)):
                    return score, game
    return None


def with_recorded_score(store: Store, route: RouteSettings) -> RouteSettings:
    """The route with the score of its game, for commands that change games; unchanged if the file names a score."""
    if not route.auto_score:
        return route
    found = recorded_score(store, route)
    if found is None:
        raise SettingsError(f"routes.{route.name}: {NOT_CHOSEN}")
    return with_score(route, found[0])
