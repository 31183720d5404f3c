"""The journals of games in Redis, read with a client that waits."""

import json
from collections.abc import Iterator
from typing import Any

from msgspec.json import decode

from bpac.errors import StoreError
from bpac.routing.decision import Decision
from bpac.routing.journal.chain import next_head
from bpac.routing.journal.entries import Resolved
from bpac.routing.journal.entry_lines import entry_from_json
from bpac.stores.redis.journal import PAGE, coin_key
from bpac.stores.redis.keys import GameNames
from bpac.stores.redis.server.address import RedisAddress
from bpac.stores.redis.server.connecting import BlockingRedisClient, fields_of
from bpac.stores.store import Archived, Claim, CoinKey, Game, Link, StoredEntry, StoredRound


class RedisReader:
    """Journals in Redis.

    Parameters
    ----------
    address: where they are.
    """

    def __init__(self, address: RedisAddress) -> None:
        self.address = address
        self.client = BlockingRedisClient(address)

    def of(self, game: Game) -> GameNames:
        """The keys of a game."""
        return GameNames(self.address.name, game.number)

    def number_of_step(self, game: Game, step: int) -> int:
        """The number of the entry that decides a step."""
        return self._number_of(game, step)

    def length(self, game: Game) -> int:
        """The number of entries of a journal."""
        return int(self.client.command("HGET", self.of(game).state, "entries") or 0)

    def entries_per_second(self, game: Game, now: float, latest: int = 500) -> float | None:
        """How fast a journal has grown of late, by the times in its entries; none if they say nothing.

        Parameters
        ----------
        game: the game.
        now: seconds since 1970.
        latest: how many entries are looked at, at most.
        """
        page = self.client.command("XREVRANGE", self.of(game).journal, "+", "-", "COUNT", latest)
        times = [at for _, fields in page if (at := decode(fields_of(fields)[b"note"]).get("at"))]
        began = min(times, default=now)
        return len(page) / (now - began) if began < now else None

    def head(self, game: Game) -> bytes:
        """The head of a journal's hash chain."""
        found = self.client.command("HGET", self.of(game).state, "head")
        return bytes.fromhex(found.decode()) if found is not None else game.head

    def _pages(self, game: Game, after: int) -> Iterator[tuple[int, bytes, bytes]]:
        """Number, text and note of the entries after a number."""
        while True:
            page = self.client.command("XRANGE", self.of(game).journal, f"({after}-0", "+", "COUNT", PAGE)
            for name, fields in page:
                after = int(name.split(b"-")[0])
                values = fields_of(fields)
                yield after, values[b"text"], values[b"note"]
            if len(page) < PAGE:
                return

    def links(self, game: Game) -> Iterator[Link]:
        """The entries of a journal as they are written, with the hash chain; those archived are left out."""
        archived = self.archived(game)
        head, before = (game.head, 0) if archived is None else (archived.head, archived.entries)
        for number, text, _ in self._pages(game, before):
            if number != before + 1:
                raise StoreError(f"entry {before + 1} of game {game.number} is missing in Redis")
            head, before = next_head(head, text.decode()), number
            yield Link(text.decode(), head)

    def entries(self, game: Game, after: int = 0) -> Iterator[StoredEntry]:
        """The entries of a journal in order, without the first ``after``."""
        archived = self.archived(game)
        if archived is not None and after < archived.entries:
            raise StoreError(
                f"the first {archived.entries} entries of game {game.number} are archived, the last of them in "
                f"{archived.file}: this needs the whole journal"
            )
        for number, text, note in self._pages(game, after):
            yield StoredEntry(entry_from_json(text.decode(), number), decode(note))

    def archived(self, game: Game) -> Archived | None:
        """The first entries of a journal that were cut; none if it is complete."""
        text = self.client.command("GET", self.of(game).archived)
        if text is None:
            return None
        values = json.loads(text)
        return Archived(
            values["entries"], bytes.fromhex(values["head"]), values["snapshot"], values["block"], values["file"]
        )

    def decision(self, game: Game, step: int) -> Decision | None:
        """The decision of that step."""
        number = self._number_of(game, step) if step >= 1 else 0
        entry = next((entry for entry, _ in self.entries(game, number - 1)), None) if number else None
        return entry if isinstance(entry, Decision) and entry.step == step else None

    def rounds(self, game: Game, before: int | None = None, limit: int = 50) -> list[StoredRound]:
        """The latest rounds, newest first."""
        end = self.length(game) + 1 if before is None else self._number_of(game, before)
        below, found = f"({end}-0", dict[int, StoredEntry]()
        outcomes: dict[int, StoredEntry] = {}
        while len(found) < limit:
            page = self.client.command("XREVRANGE", self.of(game).journal, below, "-", "COUNT", 4 * limit)
            for name, fields in page:
                below = f"({name.decode()}"
                values = fields_of(fields)
                stored = StoredEntry(entry_from_json(values[b"text"].decode()), decode(values[b"note"]))
                if isinstance(stored.entry, Resolved):
                    outcomes.setdefault(stored.entry.step, stored)
                elif isinstance(stored.entry, Decision) and len(found) < limit:
                    found[stored.entry.step] = stored
            if len(page) < 4 * limit:
                break
        if before is not None:
            outcomes |= self._later_outcomes(game, end - 1, set(found))
        return [StoredRound(stored, outcomes.get(step)) for step, stored in found.items()]

    def _later_outcomes(self, game: Game, after: int, steps: set[int]) -> dict[int, StoredEntry]:
        """The outcomes of some rounds that stand after an entry."""
        found: dict[int, StoredEntry] = {}
        for stored in self.entries(game, after):
            if isinstance(stored.entry, Resolved) and stored.entry.step in steps:
                found[stored.entry.step] = stored
        return found

    def _number_of(self, game: Game, step: int) -> int:
        """The number of the first round's entry whose step is not below this; one more than the last if there is none.

        Steps only grow along a journal.
        """
        archived = self.archived(game)
        end = self.length(game) + 1
        low, high = (0 if archived is None else archived.entries) + 1, end
        while low < high:
            middle = (low + high) // 2
            at, found = self._round_from(game, middle, high)
            if found < step:
                low = at + 1
            else:
                high = middle
        return self._round_from(game, low, end)[0]

    def _round_from(self, game: Game, number: int, end: int) -> tuple[int, float]:
        """Number and step of the first round from an entry on; ``end`` and infinity if there is none before."""
        while number < end:
            page = self.client.command("XRANGE", self.of(game).journal, f"{number}-0", "+", "COUNT", 32)
            for name, fields in page:
                number = int(name.split(b"-")[0])
                entry = entry_from_json(fields_of(fields)[b"text"].decode(), number)
                if isinstance(entry, Decision):
                    return number, entry.step
            if not page:
                break
            number += 1
        return end, float("inf")

    def snapshot(self, game: Game) -> dict[str, Any] | None:
        """The latest snapshot."""
        text = self.client.command("GET", self.of(game).snapshot)
        state: dict[str, Any] | None = None if text is None else decode(text)["state"]
        return state

    def claims(self, game: Game) -> list[Claim]:
        """All claims, in order."""
        texts = self.client.command("LRANGE", self.of(game).claims, 0, -1)
        values = [decode(text) for text in texts]
        return [Claim(value["entries"], value["values"], value["head"]) for value in values]

    def key(self, game: Game, step: int) -> CoinKey | None:
        """The key of the block that a step belongs to; none if its coin does not come from a key."""
        return coin_key(
            self.client.command("ZREVRANGEBYSCORE", self.of(game).keys, step, "-inf", "WITHSCORES", "LIMIT", 0, 1)
        )
