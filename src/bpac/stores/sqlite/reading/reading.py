"""Reading the journals of a SQLite store, also while a gateway writes to it."""

import json
import sqlite3
import threading
from collections.abc import Iterator
from typing import Any

from bpac.errors import SnapshotError, StoreError
from bpac.routing.decision import Decision
from bpac.stores.sqlite.archives import read_archived, refuse_archived
from bpac.stores.sqlite.reading.checking import (
    checked_entries,
    damaged,
    head_at,
    quoted,
    read_entry,
    read_json,
    seal,
    typed,
)
from bpac.stores.sqlite.reading.contents import Contents, contents
from bpac.stores.sqlite.reading.rounds import latest_rounds
from bpac.stores.sqlite.recovery.causes import cause_of
from bpac.stores.store import Archived, Claim, CoinKey, Game, Link, LostEntries, StoredEntry, StoredRound

# What SQLite raises on a damaged file; its own messages may quote what cannot be decoded.
UNREADABLE = (sqlite3.Error, UnicodeDecodeError)

KEY_OF_STEP = """
    SELECT first_step, key FROM coin_keys WHERE game = ? AND first_step <= ? ORDER BY first_step DESC LIMIT 1
"""


class SqliteReader:
    """The journals in a SQLite file.

    Parameters
    ----------
    path: the file.
    connection: to the file; used here only, and by one thread at a time.
    """

    def __init__(self, path: str, connection: sqlite3.Connection) -> None:
        self.path = path
        self._reading = connection
        self._one_reader = threading.Lock()
        self.contents: Contents = contents(self._all, path)
        self.secret = self.contents.secret
        self._games = list(self.contents.games)
        self._losses = self.contents.losses
        self._ends = dict(self.contents.ends)
        self._cuts = dict(self.contents.cuts)
        # The entries that were there at the start must be readable to the last.
        self._least = {game: end.number for game, end in self.contents.ends.items()}

    def games(self) -> list[Game]:
        """Every game, in the order in which they were opened or last resumed."""
        return list(self._games)

    def losses(self) -> list[LostEntries]:
        """Journals found shorter than, or different from, what was acknowledged. Such games must not go on."""
        return list(self._losses)

    def head(self, game: Game) -> bytes:
        """The head of a journal's hash chain after all that was appended so far."""
        return self._ends[game.number].head

    def entries(self, game: Game, after: int = 0) -> Iterator[StoredEntry]:
        """The durable entries of a journal in order, without the first ``after``; ``StoreError`` if one is damaged."""
        refuse_archived(self._cuts, game, after)
        return (entry for entry, _ in self._checked(game, after))

    def links(self, game: Game) -> Iterator[Link]:
        """The durable entries of a journal as they are written, with the hash chain; those archived are left out."""
        cut = self._cuts.get(game.number)
        return (link for _, link in self._checked(game, cut.entries if cut else 0))

    def archived(self, game: Game) -> Archived | None:
        """The first entries of a journal that were cut from the store; none if it is complete."""
        return read_archived(self._all, game, self.path) if game.number in self._cuts else None

    def _checked(self, game: Game, after: int) -> Iterator[tuple[StoredEntry, Link]]:
        cut = self._cuts.get(game.number)
        head = cut.head if cut is not None and cut.entries == after else None
        return checked_entries(self._all, game, after, self._least.get(game.number, 0), self.path, head=head)

    def decision(self, game: Game, step: int) -> Decision | None:
        """The decision of that step, if it is durable."""
        for (text,) in self._all("SELECT entry FROM entries WHERE game = ? AND step = ?", (game.number, step)):
            found = read_entry(text, game, self.path)
            return found if isinstance(found, Decision) and found.step == step else None
        return None

    def rounds(self, game: Game, before: int | None = None, limit: int = 50) -> list[StoredRound]:
        """The latest durable rounds, newest first."""
        return latest_rounds(self._all, game, before, limit, self.path)

    def snapshot(self, game: Game) -> dict[str, Any] | None:
        """The latest durable snapshot; ``SnapshotError`` if it is damaged or not of this journal."""
        query = "SELECT snapshot, entries, seal FROM snapshots WHERE game = ?"
        for text, number, sealed in self._all(query, (game.number,)):
            cut = self._cuts.get(game.number)
            head = cut.head if cut and cut.entries == number else head_at(self._all, game.number, number)
            if not isinstance(text, str) or sealed != seal(head, text):
                raise SnapshotError("the snapshot is damaged or not of this journal")
            snapshot: dict[str, Any] = json.loads(text)
            return snapshot
        return None

    def claims(self, game: Game) -> list[Claim]:
        """All claims, in order."""
        rows = self._all("SELECT entries, claim, head FROM claims WHERE game = ? ORDER BY entries", (game.number,))
        claims = [Claim(entries, read_json(claim, game, self.path), head) for entries, claim, head in rows]
        if not all(typed(claim, (int, dict, str)) for claim in claims):
            raise damaged(self.path, game)
        return claims

    def key(self, game: Game, step: int) -> CoinKey | None:
        """The key of the block that a step belongs to; none if its coin does not come from a key."""
        for first_step, key in self._all(KEY_OF_STEP, (game.number, step)):
            if not isinstance(key, bytes):
                raise damaged(self.path, game)
            return CoinKey(first_step, key)
        return None

    def _all(self, query: str, values: tuple[Any, ...]) -> list[Any]:
        try:
            with self._one_reader:
                return self._reading.execute(query, values).fetchall()
        except UNREADABLE as error:
            cause = cause_of(error)
            raise StoreError(
                f"{self.path} cannot be read ({quoted(error)}): restore it from a copy",
                cause=cause.what,
                remedy=cause.remedy,
            ) from error
