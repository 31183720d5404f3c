"""The stores that games are moved from and to."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from bpac.cli.games.changed_games import ending
from bpac.errors import InputError
from bpac.routing.journal.entries import Opened
from bpac.routing.recorded_terms import DecisionRules
from bpac.routing.router import Router
from bpac.stores import SqliteStore
from bpac.stores.redis.server.address import is_redis, read_address
from bpac.stores.store import Game, Store
from bpac.stores.whole_game import WholeGame

if TYPE_CHECKING:
    from bpac.stores.redis.store import RedisStore


class Place(Protocol):
    """A store that a game is moved from or to."""

    @property
    def store(self) -> Store:
        """The store."""

    @property
    def name(self) -> str:
        """What it is called in messages and in the reason why a game ended."""

    @property
    def elsewhere(self) -> str:
        """What has room for a game whose number is taken here."""

    def ending(self, game: Game) -> str | None:
        """Why a game is over; none if it is not."""

    def check_plays(self, router: Router) -> None:
        """Raise ``InputError`` if gateways with this store cannot decide as a game does."""

    def listed(self) -> list[Game]:
        """The games that are there."""

    def end(self, game: Game, router: Router, why: str) -> Game | None:
        """End a game, unless it was ended for the same reason before; the game that has taken its place, if any."""

    def adopt(self, whole: WholeGame) -> None:
        """Take over a game. If this raises, it is not there."""

    def close(self) -> None:
        """Close the store."""


class SqlitePlace:
    """A SQLite file that no gateway uses.

    Parameters
    ----------
    store: opened with ``commit_each``.
    """

    elsewhere = "a new file"

    def __init__(self, store: SqliteStore) -> None:
        self.store = store
        self.name = str(Path(store.path).resolve())

    def ending(self, game: Game) -> str | None:
        """Why a game is over; none if it is not."""
        found = ending(self.store, game)
        return None if found is None else found[1]

    def check_plays(self, router: Router) -> None:
        """A gateway with a SQLite store decides as any game does."""

    def listed(self) -> list[Game]:
        """The games that are there."""
        return self.store.games()

    def end(self, game: Game, router: Router, why: str) -> Game:
        """Begin a game with the same terms and settings, which takes the place of another one."""
        before = ending(self.store, game)
        if before is not None:
            return before[0]
        with self.store.together():
            new = self.store.open_game(game.route, game.segment, game.terms)
            note = {"at": round(time.time(), 3), "ends": game.number, "why": why}
            self.store.append(new, Opened(router.settings.to_json()), note)
        return new

    def adopt(self, whole: WholeGame) -> None:
        """Take over a game, in one commit."""
        self.store.adopt(whole)

    def close(self) -> None:
        """Close the file."""
        self.store.close()


class RedisPlace:
    """The games of some gateways in Redis.

    Parameters
    ----------
    store: the games.
    """

    elsewhere = "gateways with another ?name="

    def __init__(self, store: "RedisStore") -> None:
        self.store = store
        self.name = f"Redis at {store.address.shown}, name {store.address.name}"
        self._before = 0

    def ending(self, game: Game) -> str | None:
        """Why a game is over; none if it is not."""
        found = ending(self.store, game)
        return self.store.over(game) or (None if found is None else found[1])

    def check_plays(self, router: Router) -> None:
        """Raise ``InputError`` if decisions of a game need its newest state."""
        DecisionRules.of(router.settings)

    def listed(self) -> list[Game]:
        """The games that are there."""
        games, self._before = self.store.listed()
        return games

    def end(self, game: Game, router: Router, why: str) -> None:
        """End a game; ``StoreInUse`` while a gateway plays it."""
        from bpac.stores.redis.at_rest import retire  # noqa: PLC0415  # redis-py is optional

        retire(self.store, game, why)

    def adopt(self, whole: WholeGame) -> None:
        """Take over a game, unless another one was opened since the games were listed."""
        from bpac.stores.redis.adopting import adopt  # noqa: PLC0415  # redis-py is optional

        adopt(self.store, whole, self._before)

    def close(self) -> None:
        """Close the connections."""
        self.store.close()


def place_at(target: str) -> SqlitePlace | RedisPlace:
    """The store at an address of Redis or in a SQLite file, which is made if it does not exist."""
    if is_redis(target):
        from bpac.stores.redis.store import RedisStore  # noqa: PLC0415  # redis-py is optional

        return RedisPlace(RedisStore(read_address(target)))
    if "://" in target and not target.startswith("sqlite:///"):
        raise InputError(f"--to must be a SQLite file or an address of Redis, got {target!r}")
    path = target.removeprefix("sqlite:///")
    return SqlitePlace(SqliteStore(path, wait_for_disk=True, commit_each=True))


def shown_target(target: str) -> str:
    """A target as it is shown: without the password."""
    if not is_redis(target):
        return target
    address = read_address(target)
    return f"Redis at {address.shown}, name {address.name}"
