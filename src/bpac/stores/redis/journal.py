"""The journal of a game in Redis, read with an asynchronous client: its state follows from a snapshot and its entries.

Replicas that do not fold read it only when somebody looks, or when they take over: what they decide on comes with the
replies to their own calls (``messages.py``). So a replica may be far behind. Then it goes on from the latest snapshot
instead of following every entry, and ends in the same state, to the bit.
"""

import asyncio
from typing import Any, NamedTuple, Protocol

from msgspec.json import decode

from bpac.errors import StoreError
from bpac.routing.journal.chain import next_head
from bpac.routing.journal.entries import Opened
from bpac.routing.journal.entry_lines import entry_from_json
from bpac.routing.journal.rebuild import opened
from bpac.routing.journal.snapshot import load_snapshot
from bpac.stores.redis.folding.fold import FoldedState, PlainState
from bpac.stores.redis.keys import GameNames
from bpac.stores.redis.server.connecting import RedisClient, fields_of
from bpac.stores.store import CoinKey, Game

# Entries that are read at once, and that are followed before other requests have their turn.
PAGE, AT_ONCE = 1000, 50
# From so many entries on it takes less time to load a snapshot than to follow them.
WORTH_A_SNAPSHOT = 500


class Restoring(Protocol):
    """Makes states to start from."""

    def new(self, opened: Opened) -> FoldedState:
        """The state after the first entry of a journal."""

    def load(self, snapshot: dict[str, Any]) -> FoldedState:
        """The state that a snapshot contains."""


class PlainRestoring:
    """Makes states of games and nothing else."""

    def new(self, entry: Opened) -> PlainState:
        """The state after the first entry of a journal."""
        return PlainState(opened(entry))

    def load(self, snapshot: dict[str, Any]) -> PlainState:
        """The state that a snapshot contains."""
        return PlainState(load_snapshot(snapshot["router"]), dict(snapshot["owners"]))


class EntriesLost(StoreError):
    """The journal no longer contains what was acknowledged."""


class Position(NamedTuple):
    """How far a journal was read.

    Parameters
    ----------
    entries: how many.
    head: of the hash chain after them.
    """

    entries: int
    head: bytes


class FollowedJournal:
    """The state of a game, followed in this process.

    Parameters
    ----------
    client: the connections.
    names: the keys of the game.
    game: the game.
    restoring: makes the state to start from.

    Attributes
    ----------
    state: what follows from the entries read so far; none if there are none.
    position: how far it was read.
    """

    def __init__(self, client: RedisClient, names: GameNames, game: Game, restoring: Restoring) -> None:
        self._client = client
        self._names = names
        self._game = game
        self._restoring = restoring
        self.state: FoldedState | None = None
        self.position = Position(0, game.head)
        # The latest position that Redis acknowledged: it must still be there.
        self.acknowledged = self.position

    async def catch_up(self) -> None:
        """Read what was written since; ``EntriesLost`` if entries are missing."""
        if self.state is None or await self._snapshot_is_ahead(WORTH_A_SNAPSHOT):
            await self._begin()
        while page := await self._page():
            first = int(page[0][0].split(b"-")[0])
            if first > self.position.entries + 1 and await self._snapshot_is_ahead(1):
                await self._begin()  # entries behind the snapshot were archived
                continue
            for at, (number, fields) in enumerate(page):
                self._follow(int(number.split(b"-")[0]), fields)
                if at % AT_ONCE == AT_ONCE - 1:
                    await asyncio.sleep(0)
            if len(page) < PAGE:
                break
        if self.position.entries > self.acknowledged.entries:
            self.acknowledged = self.position
        elif self.position.entries < self.acknowledged.entries:
            raise self._lost(f"it has {self.position.entries} entries and acknowledged {self.acknowledged.entries}")

    def forget(self) -> None:
        """Read from the beginning the next time: what was computed here was not published."""
        self.state, self.position = None, Position(0, self._game.head)

    async def key(self, step: int) -> CoinKey | None:
        """The key of the coins of a step."""
        found = await self._client.command(
            "ZREVRANGEBYSCORE", self._names.keys, step, "-inf", "WITHSCORES", "LIMIT", 0, 1
        )
        return coin_key(found)

    async def _snapshot_is_ahead(self, entries: int) -> bool:
        """Whether the latest snapshot is at least so many entries ahead of what was read."""
        found = await self._client.command("HGET", self._names.state, "snapshot")
        return int(found or 0) >= self.position.entries + entries

    async def _begin(self) -> None:
        text = await self._client.command("GET", self._names.snapshot)
        if text is not None:
            snapshot = decode(text)
            self.state = self._restoring.load(snapshot["state"])
            self.position = Position(snapshot["entries"], bytes.fromhex(snapshot["head"]))

    async def _page(self) -> list[tuple[bytes, Any]]:
        after = f"({self.position.entries}-0"
        page: list[tuple[bytes, Any]] = await self._client.command(
            "XRANGE", self._names.journal, after, "+", "COUNT", PAGE
        )
        return page

    def _follow(self, number: int, fields: Any) -> None:
        values = fields_of(fields)
        if number != self.position.entries + 1:
            raise self._lost(f"entry {number} follows entry {self.position.entries}")
        text = values[b"text"].decode()
        head = next_head(self.position.head, text)
        if number == self.acknowledged.entries and head != self.acknowledged.head:
            raise self._lost(f"entry {number} is not the one that was acknowledged")
        entry = entry_from_json(text, number)
        if self.state is not None:
            self.state.apply(entry, decode(values[b"note"]))
        elif isinstance(entry, Opened):
            self.state = self._restoring.new(entry)
        else:
            raise self._lost("its first entry does not open it")
        self.position = Position(number, head)

    def _lost(self, why: str) -> EntriesLost:
        what = f"the journal of game {self._game.number} lost entries: {why}"
        return EntriesLost(what, cause=what, remedy="a new game begins with a threshold of 0")


def coin_key(found: Any) -> CoinKey | None:
    """The key in the reply to a query of the sorted set; none if it is empty."""
    if not found:
        return None
    key, first = found[0] if isinstance(found[0], list | tuple) else found[:2]
    return CoinKey(int(float(first)), bytes.fromhex(key.decode()))
