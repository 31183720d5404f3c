"""A store in one SQLite file: write-ahead log, one writer, many entries to a commit."""

import json
import logging
import os
import sqlite3
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from typing import Any

from bpac.errors import SnapshotError, StoreError
from bpac.routing.decision import Decision
from bpac.routing.journal.chain import next_head
from bpac.routing.journal.entries import Entry
from bpac.stores.private_files import make_private, place_of, refuse_link
from bpac.stores.sqlite.acknowledged import End, Noting
from bpac.stores.sqlite.checking import checked_entries, damaged, head_at, read_entry, read_json, said, seal, typed
from bpac.stores.sqlite.checkpoints import Checkpoints
from bpac.stores.sqlite.contents import Contents, contents
from bpac.stores.sqlite.migrations import HASH_CHAINS, check, migrate
from bpac.stores.sqlite.ownership import Ownership
from bpac.stores.sqlite.rounds import latest_rounds
from bpac.stores.sqlite.statements import (
    APPEND,
    CLAIM,
    KEY,
    LOSS,
    MOST_ROWS,
    OPEN,
    SNAPSHOT,
    entry_text,
    note_and_check,
    step_of,
)
from bpac.stores.sqlite.writing import CallWriter, ThreadWriter, TurnWriter, Writer
from bpac.stores.store import Claim, CoinKey, Game, Kept, KeptRound, Link, LostEntries

log = logging.getLogger("bpac.stores")

# What SQLite raises on a damaged file; its own messages may quote what cannot be decoded.
UNREADABLE = (sqlite3.Error, UnicodeDecodeError)

# What SQLite keeps beside its file.
LOGS = ("-wal", "-shm", "-journal")


class SqliteStore:
    """Journals in a SQLite file that this process owns.

    Entries that wait together share a commit: the busier, the less one costs.
    After a crash the file holds a beginning of what was appended, and all that was durable. Should it hold less, or
    something else, than what was noted beside it as durable, ``losses`` says so.

    Parameters
    ----------
    path: the file.
    commit_each: commit within each call, for programs without an event loop.
    wait_for_disk: wait in each commit until the disk has it. Without, a power failure may lose the last moments (a
        crash of the process or its death by a signal loses nothing either way).
    """

    def __init__(self, path: str, *, wait_for_disk: bool = False, commit_each: bool = False) -> None:
        self.path = place_of(path)
        self._closed: StoreError | None = None
        self._owned = Ownership(self.path)
        self._checkpoints: Checkpoints | None = None
        self._writer: Writer | None = None
        with ExitStack() as opened:
            self._owned.take()
            opened.callback(self._owned.release)
            # Made here and not by SQLite, which gives the files beside it the mode of this one.
            make_private(self.path)
            for ending in LOGS:
                make_private(self.path + ending, create=False)
            try:
                self._open(opened, wait_for_disk, commit_each)
            except UNREADABLE as error:
                raise StoreError(f"{self.path} cannot be used as a store ({said(error)}): give another file") from error
            opened.pop_all()  # it is open, and stays so

    def _open(self, opened: ExitStack, wait_for_disk: bool, commit_each: bool) -> None:
        address = f"file:{_quoted(self.path)}"
        self._writing = opened.enter_context(closing(_connect(self.path, address)))
        self._writing.execute("PRAGMA journal_mode = WAL")
        # Until it is open: an upgrade, or a loss that was found, must not be forgotten.
        self._writing.execute("PRAGMA synchronous = FULL")
        # Checkpoints have a connection of their own: SQLite would not tell of one that fails in a commit.
        self._writing.execute("PRAGMA wal_autocheckpoint = 0")
        version = migrate(self._writing, self.path)
        self._reading = opened.enter_context(closing(_connect(self.path, f"{address}?mode=ro")))
        found = self._start()
        new = version < HASH_CHAINS or not any(end.number for end in found.ends.values())
        if found.notes.doubt and not (found.notes.missing and new):
            log.warning("%s: whether a journal has lost its end cannot be told", found.notes.doubt)
        for loss in found.new_losses:
            log.error("%s: %s", self.path, loss)
            self._writing.execute(LOSS, loss)
        self._writing.execute(f"PRAGMA synchronous = {'FULL' if wait_for_disk else 'NORMAL'}")
        self._noting = Noting(self.path, found.identity, self._ends)
        opened.callback(self._noting.close)
        writer = CallWriter if commit_each else ThreadWriter if wait_for_disk else TurnWriter
        self._writer = writer(self._writing, self.path, self._noting)
        self._checkpoints = Checkpoints(_connect(self.path, address), self._writer)

    @property
    def failure(self) -> StoreError | None:
        """Why it takes nothing more; none as long as it works."""
        return self._closed or (self._writer.failure if self._writer is not None else None)

    @classmethod
    def read_only(cls, path: str) -> "SqliteStore":
        """Look into a store, also while a gateway writes to it."""
        store = cls.__new__(cls)
        store.path = place_of(path)
        refuse_link(store.path)
        store._owned = Ownership(store.path)
        store._closed = StoreError(f"{store.path} was opened to be read only")
        store._checkpoints = store._writer = None
        if not os.path.exists(store.path):
            raise StoreError(f"{store.path} does not exist: no gateway has used it yet, or not from this directory")
        with ExitStack() as opened:
            try:
                store._reading = opened.enter_context(
                    closing(_connect(store.path, f"file:{_quoted(store.path)}?mode=ro"))
                )
                version = check(store._reading, store.path)
                if version == 0:
                    raise StoreError(f"{store.path} is empty: no gateway has used it yet")
                if version < HASH_CHAINS:
                    raise StoreError(f"{store.path} is of an older version: start the gateway once, which upgrades it")
                store._start()
            except UNREADABLE as error:
                raise StoreError(f"{store.path} cannot be read as a store ({said(error)})") from error
            opened.pop_all()
        return store

    def _start(self) -> Contents:
        """Look at what is there."""
        # What is written goes through a connection of its own; of those who read one does at a time.
        self._one_reader = threading.Lock()
        found = contents(self._all, self.path)
        self.secret = found.secret
        self._games, self._ends, self._losses = list(found.games), dict(found.ends), found.losses
        # What was there at the start can be read to its end.
        self._least = {game: end.number for game, end in found.ends.items()}
        self._keys: dict[int, CoinKey] = {}
        return found

    def games(self) -> list[Game]:
        """Every game, oldest first."""
        return list(self._games)

    def losses(self) -> list[LostEntries]:
        """Journals found shorter than, or different from, what was acknowledged. Such games must not go on."""
        return list(self._losses)

    def open_game(self, route: str, segment: str, terms: str) -> Game:
        """Start a new game."""
        # The number of a game that was lost is not given again.
        number = max([0, *self._ends, *(loss.game for loss in self._losses)]) + 1
        game = Game(number, route, segment, terms)
        self._put(OPEN, (number, route, segment, terms, game.head))
        self._games.append(game)
        self._ends[number] = End(0, game.head)
        return game

    def append(self, game: Game, entry: Entry, note: Mapping[str, Any]) -> None:
        """Append to a journal, without waiting."""
        number, head = self._ends[game.number]
        text = entry_text(entry)
        head = next_head(head, text)
        noted, check_sum = note_and_check(note)
        self._put(APPEND, (game.number, number + 1, step_of(entry), text, noted, head, check_sum))
        self._ends[game.number] = End(number + 1, head)

    def head(self, game: Game) -> bytes:
        """The head of a journal's hash chain after all that was appended so far."""
        return self._ends[game.number].head

    async def durable(self) -> None:
        """Wait until all that was appended so far is kept for good, or raise ``StoreError``."""
        if self._writer is not None:
            await self._writer.durable()

    def entries(self, game: Game, after: int = 0) -> Iterator[Kept]:
        """The durable entries of a journal in order, without the first ``after``; ``StoreError`` if one is damaged."""
        return (kept for kept, _ in checked_entries(self._all, game, after, self._least.get(game.number, 0), self.path))

    def links(self, game: Game) -> Iterator[Link]:
        """The durable entries of a journal as they are written, with the hash chain."""
        return (link for _, link in checked_entries(self._all, game, 0, self._least.get(game.number, 0), self.path))

    def decision(self, game: Game, step: int) -> Decision | None:
        """The decision of that step, if it is durable."""
        for (text,) in self._all("SELECT entry FROM entries WHERE game = ? AND step = ?", (game.number, step)):
            found = read_entry(text, game, self.path)
            return found if isinstance(found, Decision) and found.step == step else None
        return None

    def rounds(self, game: Game, before: int | None = None, limit: int = 50) -> list[KeptRound]:
        """The latest durable rounds, newest first."""
        return latest_rounds(self._all, game, before, limit, self.path)

    def save_snapshot(self, game: Game, snapshot: Mapping[str, Any], claim: Claim) -> None:
        """Keep a snapshot in the place of earlier ones, and beside the earlier claims what was claimed with it."""
        number, head = self._ends[game.number]
        if claim.entries != number:
            raise StoreError(f"a claim about {claim.entries} entries does not fit a journal of {number}")
        text = json.dumps(snapshot)
        self._put(SNAPSHOT, (game.number, text, number, seal(head, text)))
        self._put(CLAIM, (game.number, number, json.dumps(claim.values), head.hex()))

    def snapshot(self, game: Game) -> dict[str, Any] | None:
        """The latest durable snapshot; ``SnapshotError`` if it is damaged or not of this journal."""
        query = "SELECT snapshot, entries, seal FROM snapshots WHERE game = ?"
        for text, number, sealed in self._all(query, (game.number,)):
            head = head_at(self._all, game.number, number)
            if not isinstance(text, str) or sealed != seal(head, text):
                raise SnapshotError("the snapshot is damaged or not of this journal")
            kept: dict[str, Any] = json.loads(text)
            return kept
        return None

    def claims(self, game: Game) -> list[Claim]:
        """All that was claimed, in order."""
        rows = self._all("SELECT entries, claim, head FROM claims WHERE game = ? ORDER BY entries", (game.number,))
        claims = [Claim(entries, read_json(claim, game, self.path), head) for entries, claim, head in rows]
        if not all(typed(claim, (int, dict, str)) for claim in claims):
            raise damaged(self.path, game)
        return claims

    def keep_key(self, game: Game, key: CoinKey) -> None:
        """Keep the key of a block of coins, without waiting: it is durable before what is appended after it."""
        self._put(KEY, (game.number, *key))
        self._keys[game.number] = key

    def key(self, game: Game, step: int) -> CoinKey | None:
        """The key of the block that a step belongs to; none if its coin came from no such key."""
        latest = self._keys.get(game.number)
        if latest is not None and latest.first_step <= step:
            return latest
        query = """
            SELECT first_step, key FROM coin_keys WHERE game = ? AND first_step <= ? ORDER BY first_step DESC LIMIT 1
        """
        for first_step, key in self._all(query, (game.number, step)):
            if not isinstance(key, bytes):
                raise damaged(self.path, game)
            return CoinKey(first_step, key)
        return None

    def close(self) -> None:
        """Make everything durable and let go of it."""
        # Readers first: the last to leave moves what is left of the log into the file, and must be able to write.
        self._reading.close()
        if self._writer is not None:
            self._writer.close()
            if self._checkpoints is not None:
                self._checkpoints.close()
            self._closed = self.failure or StoreError("the store is closed")
            self._writer = None
            self._writing.close()
            self._noting.close()
        self._owned.release()

    def _all(self, query: str, values: tuple[Any, ...]) -> list[Any]:
        try:
            with self._one_reader:
                return self._reading.execute(query, values).fetchall()
        except UNREADABLE as error:
            raise StoreError(f"{self.path} cannot be read ({said(error)}): restore it from a copy") from error

    def _put(self, statement: str, values: tuple[Any, ...]) -> None:
        if self.failure is not None or self._writer is None:
            raise self.failure or StoreError(f"{self.path} was opened to be read only")
        self._writer.put((statement, values))


def _connect(path: str, uri: str) -> sqlite3.Connection:
    try:
        return sqlite3.connect(
            uri, uri=True, isolation_level=None, check_same_thread=False, timeout=10.0, cached_statements=2 * MOST_ROWS
        )
    except sqlite3.Error as error:
        raise StoreError(f"{path} cannot be opened as a store ({error})") from error


def _quoted(path: str) -> str:
    return path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
