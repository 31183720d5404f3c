"""The store of games in Redis: their journals, for reading, and the list of games, which is written here.

Entries are not appended through this class: replicas send what happened to Redis (``replica.py``), and the folder of
each game writes its journal (``folder.py``).
"""

import json
import secrets
import time
from collections.abc import Callable, Mapping
from typing import Any

from msgspec.json import decode

from bpac.errors import StoreError
from bpac.routing.decision import Decision
from bpac.routing.journal.entries import Entry
from bpac.stores.encoding import encode
from bpac.stores.redis.keys import SharedNames
from bpac.stores.redis.reader import RedisReader
from bpac.stores.redis.replicas.outside import counted
from bpac.stores.redis.server.address import RedisAddress
from bpac.stores.redis.server.connecting import RedisGone, fields_of
from bpac.stores.redis.server.server_checks import check_server
from bpac.stores.redis.server.server_faults import BY_ITSELF, REMEDY, START_REMEDY
from bpac.stores.store import Archived, Claim, CoinKey, Game, LostEntries

WRITTEN_ELSEWHERE = "entries of games in Redis are written by the gateway that folds the game"


class NoRoom(StoreError):
    """A route has as many games as it may have."""


class RedisStore(RedisReader):
    """Games in Redis.

    Parameters
    ----------
    address: where they are.
    read_only: whether to leave everything as it is (default: false).
    """

    failure: StoreError | None = None

    def __init__(self, address: RedisAddress, *, read_only: bool = False) -> None:
        try:
            super().__init__(address)
        except RedisGone as error:
            raise at_start(error) from error
        self.names = SharedNames(address.name)
        self._read_only = read_only
        self._losses: list[LostEntries] = []
        command = self.client.command
        try:
            if not read_only:
                check_server(self.client)
                command("SET", self.names.secret, secrets.token_hex(16), "NX")
            secret = command("GET", self.names.secret)
        except StoreError as error:
            self.client.close()
            raise (at_start(error) if isinstance(error, RedisGone) else error) from error
        if secret is None:
            self.client.close()
            raise StoreError(f"no gateway named {address.name!r} has used Redis at {address.shown} yet")
        self.secret = bytes.fromhex(secret.decode())

    def games(self) -> list[Game]:
        """Every game, in the order in which they were opened or last resumed."""
        return self.listed()[0]

    def listed(self) -> tuple[list[Game], int]:
        """The games, and how often one was opened or resumed."""
        numbers, found = self.client.run("list_games", [self.names.games, self.names.order])
        order = [int(number) for number in numbers]
        games = {int(number): Game(int(number), *decode(text)) for number, text in fields_of(found).items()}
        latest = sorted(games, key=lambda number: len(order) - 1 - order[::-1].index(number))
        return [games[number] for number in latest], len(order)

    def open_game(
        self,
        route: str,
        segment: str,
        terms: str,
        instead_of: Game | None = None,
        *,
        has_room: Callable[[list[Game]], bool] = lambda games: True,
    ) -> Game:
        """Start a new game, or return the one that another replica has started: a route must not have two.

        Parameters
        ----------
        route, segment, terms: what the game is about.
        instead_of: a game that could go on, and must not (default: none).
        has_room: whether one more may be listed after those that are (default: it may); ``NoRoom`` if not.
        """
        games, before = self.listed()
        same = [game for game in games if (game.route, game.segment, game.terms) == (route, segment, terms)]
        if same and same[-1] != instead_of and not self.is_over(same[-1]):
            return same[-1]
        if not has_room(games):
            raise NoRoom(f"the route {route} has as many games as it may have")
        # It is listed when it has begun: a game that is listed and not there was lost.
        game = Game(self.reserve(), route, segment, terms)
        self.client.run("create", [self.of(game).state], game.head.hex())
        if self.list_game(game, before):
            return game
        self.client.command("DEL", self.of(game).state)
        return self.open_game(route, segment, terms, instead_of, has_room=has_room)

    def resume(self, game: Game) -> None:
        """Note that a game goes on although later ones were opened."""
        if not self._opened(self.listed()[1], game.number, ""):
            raise StoreError("another gateway has changed the list of games at the same moment: start again")

    def list_game(self, game: Game, before: int) -> bool:
        """List a game that is there already; false if another one was opened or resumed since the list was read.

        Parameters
        ----------
        game: the game.
        before: how often one had been opened or resumed when the list was read.
        """
        return self._opened(before, game.number, encode([game.route, game.segment, game.terms]))

    def reserve(self, had: int = 0) -> int:
        """A number that no game has had (default), or one that no other game gets from now on."""
        self._check_writable()
        return int(self.client.run("number_game", [self.names.games, self.names.last], had))

    def _opened(self, before: int, number: int, text: str) -> bool:
        self._check_writable()
        return bool(self.client.run("open_game", [self.names.games, self.names.order], before, number, text))

    def _check_writable(self) -> None:
        if self._read_only:
            raise StoreError("the store is opened for reading only")

    def is_over(self, game: Game) -> bool:
        """Whether a game has ended because entries were lost, or is not there."""
        if self._is_replaced(game):
            return True
        generation, over = self.client.command("HMGET", self.of(game).state, "generation", "over")
        return generation is None or over is not None

    def _is_replaced(self, game: Game) -> bool:
        return self.client.command("TYPE", self.of(game).state) not in (b"hash", b"none")

    def over(self, game: Game) -> str | None:
        """Why a game has ended; none if it has not, or if a later game has taken its place."""
        why = self.client.command("HGET", self.of(game).state, "over")
        return None if why is None else str(why.decode())

    def end_game(self, game: Game, why: str, acknowledged: int = 0) -> None:
        """End a game whose journal lost entries, and keep a record of it.

        Parameters
        ----------
        game: the game.
        why: what shows it.
        acknowledged: how many entries of its journal were seen at least.
        """
        # A server that lost everything has lost this, too; another gateway may have made it anew.
        self.client.command("SET", self.names.secret, self.secret.hex(), "NX")
        self.secret = bytes.fromhex(self.client.command("GET", self.names.secret).decode())
        self.reserve(game.number)  # no other game gets its number
        if self._is_replaced(game):  # whatever somebody has put in its place is kept, where it is in nobody's way
            self.client.command("RENAME", self.of(game).state, self.of(game).of("replaced"))
        self.client.run("end", [self.of(game).state], why)
        entries = self.length(game)
        self.client.command(
            "HSETNX", self.names.losses, game.number, encode([entries, max(acknowledged, entries + 1), why])
        )

    def sharing(self, game: Game) -> dict[str, Any]:
        """Which replica folds a game, how many there are, and how far and how fast the journal is."""
        names = self.of(game)
        holder, step = self.client.command("HMGET", names.state, "holder", "step")
        latest = self.rounds(game, limit=1)
        folded = latest[0].decided.entry.step if latest and isinstance(latest[0].decided.entry, Decision) else 0
        replicas = int(self.client.command("HLEN", names.replicas))
        outside = counted(
            fields_of(self.client.command("HGETALL", names.outside)), self.client.command("HKEYS", names.replicas)
        )
        return {
            "folder": (holder or b"").decode(),
            "replicas": replicas,
            "lag": max(int(step or 0) - folded, 0),
            "entries": self.length(game),
            "entries_per_second": self.entries_per_second(game, time.time()),
            "outside": outside._asdict(),
        }

    @property
    def path(self) -> str:
        """What the store is called in messages."""
        return f"Redis at {self.address.shown}"

    def cut(self, game: Game, archived: Archived) -> None:
        """Cut the first entries of a journal, which are in an archive."""
        before = self.archived(game)
        values = {**archived._asdict(), "head": archived.head.hex()}
        names, claims = self.of(game), sum(claim.entries <= archived.entries for claim in self.claims(game))
        keys = [names.state, names.journal, names.archived, names.claims, names.point, names.keys]
        entries = 0 if before is None else before.entries
        if self.client.run("cut_journal", keys, archived.entries, entries, json.dumps(values), claims, 0, 0) != 1:
            raise StoreError(f"game {game.number} was archived by another command at the same moment: nothing was cut")

    def losses(self) -> list[LostEntries]:
        """Journals that lost acknowledged entries. Such games must not go on."""
        try:
            found = self.client.command("HGETALL", self.names.losses)
        except RedisGone:
            return self._losses  # status and metrics are shown while Redis is gone, too
        records = {int(number): decode(text) for number, text in fields_of(found).items()}
        self._losses = [LostEntries(number, record[0], record[1], "") for number, record in records.items()]
        return self._losses

    def append(self, game: Game, entry: Entry, note: Mapping[str, Any]) -> None:
        """Raise ``StoreError``."""
        raise StoreError(WRITTEN_ELSEWHERE)

    def save_snapshot(self, game: Game, snapshot: Mapping[str, Any], claim: Claim) -> None:
        """Raise ``StoreError``."""
        raise StoreError(WRITTEN_ELSEWHERE)

    def keep_key(self, game: Game, key: CoinKey) -> None:
        """Raise ``StoreError``."""
        raise StoreError(WRITTEN_ELSEWHERE)

    async def durable(self) -> None:
        """Return at once: what a replica was told is durable."""

    def reopened(self) -> "RedisStore":
        """Raise ``StoreError``: connections are made again by themselves."""
        raise StoreError("the store has not failed")

    def close(self) -> None:
        """Close the connections."""
        self.client.close()


def at_start(error: RedisGone) -> RedisGone:
    """The error of a gateway or a command that cannot start, with its remedy: nothing goes on by itself then."""
    remedy = START_REMEDY if error.remedy in ("", REMEDY) else error.remedy.removesuffix(f"; {BY_ITSELF}")
    return RedisGone(f"{error}: {remedy}", cause=error.cause, remedy=remedy)
