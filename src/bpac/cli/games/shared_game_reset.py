"""A game in Redis that is begun again, while no gateway plays it."""

from contextlib import closing

from bpac.cli.games.changed_games import Begun, going_on
from bpac.errors import InputError
from bpac.gateway.config.routes.routes import RouteSettings
from bpac.gateway.games.restoring.recorded_scores import with_recorded_score
from bpac.gateway.games.restoring.restoring import folded
from bpac.gateway.games.segments import alpha_of_games
from bpac.gateway.games.terms import terms_of
from bpac.routing.router import Router
from bpac.stores.redis.server.address import read_address
from bpac.stores.store import Game


class SharedGameReset:
    """Ends the current game of a segment in Redis and begins another one, with a threshold of 0.

    Parameters
    ----------
    address: of the store.
    route: the settings of the route.
    segment: the segment; empty if the route is not divided.

    Attributes
    ----------
    before: the current game.
    router: its state.
    """

    def __init__(self, address: str, route: RouteSettings, segment: str) -> None:
        from bpac.stores.redis.store import RedisStore  # noqa: PLC0415  # redis-py is optional

        self._store = RedisStore(read_address(address))
        self._route = route = with_recorded_score(self._store, route)
        self._segment = segment
        found = going_on(self._store, route, segment)
        if found is None:
            self._store.close()
            name = f"{route.name} {segment}".rstrip()
            raise InputError(f"{name} has no game with the terms of this configuration: there is nothing to reset")
        self.before: Game = found
        self.router: Router = folded(self._store, found).router

    def run(self) -> Begun:
        """Begin the new game; ``StoreInUse`` while a gateway plays the current one."""
        from bpac.stores.redis.at_rest import check_at_rest  # noqa: PLC0415  # redis-py is optional

        route = self._route
        with closing(self._store) as store:
            check_at_rest(store, self.before)
            alpha = alpha_of_games(route)
            router = route.new_router(alpha)
            game = store.open_game(route.name, self._segment, terms_of(route, router), self.before)
            return Begun(game, router, self.before, self.router)

    def close(self) -> None:
        """Change nothing."""
        self._store.close()
