"""A game in Redis that is begun again, while no gateway plays it."""

import time
from contextlib import closing

from bpac.cli.changed_games import Begun, going_on
from bpac.errors import InputError, StoreError, StoreInUse
from bpac.gateway.config.routes import RouteSettings
from bpac.gateway.games.recorded_scores import with_recorded_score
from bpac.gateway.games.restoring import folded
from bpac.gateway.games.segments import alpha_of_games
from bpac.gateway.games.terms import terms_of
from bpac.routing.router import Router
from bpac.stores.redis.address import read_address
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
        route = self._route
        with closing(self._store) as store:
            self._refuse_while_played()
            alpha = alpha_of_games(route)
            router = route.new_router(alpha)
            game = store.open_game(route.name, self._segment, terms_of(route, router), self.before)
            return Begun(game, router, self.before, self.router)

    def close(self) -> None:
        """Change nothing."""
        self._store.close()

    def _refuse_while_played(self) -> None:
        store, number = self._store, self.before.number
        names, command = store.of(self.before), store.client.command
        beats = command("HGETALL", names.replicas)
        if beats:
            # Replicas that died are still listed; those that live count on.
            time.sleep(store.address.lease)
            if command("HGETALL", names.replicas) != beats:
                raise StoreInUse(
                    f"gateways are playing game {number}: stop all of them, or some would go on with it after the reset"
                )
        last = command("XREVRANGE", names.inbox, "+", "-", "COUNT", 1)
        if last and last[0][0] != command("HGET", names.state, "folded"):
            raise StoreError(
                f"game {number} has rounds that are decided and not in its journal: start a gateway, which folds them, "
                "and stop it again"
            )
