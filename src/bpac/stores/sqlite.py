"""A store in one SQLite file: write-ahead log, one writer thread, many entries to a commit."""

import asyncio
import json
import os
import sqlite3
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from queue import SimpleQueue
from typing import Any

from bpac.errors import StoreError
from bpac.routing.decision import Decision
from bpac.routing.journal import Entry, entry_from_json
from bpac.stores.migrations import check, migrate
from bpac.stores.ownership import Ownership
from bpac.stores.rounds import latest_rounds
from bpac.stores.statements import APPEND, CLAIM, MOST_ROWS, OPEN, SNAPSHOT, Work, statements
from bpac.stores.store import Claim, Game, Kept, KeptRound


class SqliteStore:
    """Journals in a SQLite file that this process owns.

    Whatever is appended while a commit is under way goes into the next one, so the busier it is the less an entry
    costs. After a crash the file holds a beginning of what was appended, and all that was durable.

    Parameters
    ----------
    path: the file.
    wait_for_disk: wait in each commit until the disk has it. Without, a power failure may lose the last moments (a
        crash of the process or its death by a signal loses nothing either way).
    """

    def __init__(self, path: str, *, wait_for_disk: bool = False) -> None:
        self.path = os.path.realpath(path)
        self.failure: StoreError | None = None
        self._owned = Ownership(self.path)
        self._owned.take()
        try:
            self._connection = _connect(self.path, f"file:{_quoted(self.path)}")
            self._prepare(wait_for_disk)
        except sqlite3.Error as error:
            self._owned.release()
            raise StoreError(f"{self.path} cannot be used as a store ({error}): give another file") from error
        except StoreError:
            self._owned.release()
            raise
        self._start()
        self._writer: threading.Thread | None = threading.Thread(target=self._write, name="journal", daemon=True)
        self._writer.start()

    @classmethod
    def read_only(cls, path: str) -> "SqliteStore":
        """Look into a store, also while a gateway writes to it."""
        store = cls.__new__(cls)
        store.path = os.path.realpath(path)
        store._owned = Ownership(store.path)
        store.failure = StoreError(f"{store.path} was opened to be read only")
        try:
            store._connection = _connect(store.path, f"file:{_quoted(store.path)}?mode=ro")
            if check(store._connection, store.path) == 0:
                raise StoreError(f"{store.path} is empty: no gateway has used it yet")
            store._start()
        except sqlite3.Error as error:
            raise StoreError(f"{store.path} cannot be read as a store ({error})") from error
        store._writer = None
        return store

    def _prepare(self, wait_for_disk: bool) -> None:
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute(f"PRAGMA synchronous = {'FULL' if wait_for_disk else 'NORMAL'}")
        migrate(self._connection, self.path)

    def _start(self) -> None:
        self.secret: bytes = self._connection.execute("SELECT value FROM secrets").fetchone()[0]
        rows = self._connection.execute("SELECT number, route, segment, terms FROM games ORDER BY number")
        self._games = [Game(*row) for row in rows]
        # One look into the index for each game: grouping would read every entry there is.
        last = "SELECT number, (SELECT max(number) FROM entries WHERE game = games.number) FROM games"
        self._counts: dict[int, int] = {game: count or 0 for game, count in self._connection.execute(last)}
        # Work for the writer, and between it the futures of those who wait until what came before is kept.
        self._queue: SimpleQueue[Work | asyncio.Future[None] | None] = SimpleQueue()
        self._appended = 0
        self._committed = 0
        # Reading and writing go through one connection, one at a time.
        self._connected = threading.Lock()

    def games(self) -> list[Game]:
        """Every game, oldest first."""
        return list(self._games)

    def open_game(self, route: str, segment: str, terms: str) -> Game:
        """Start a new game."""
        game = Game(len(self._games) + 1, route, segment, terms)
        self._put(OPEN, (game.number, route, segment, terms))
        self._games.append(game)
        self._counts[game.number] = 0
        return game

    def append(self, game: Game, entry: Entry, note: Mapping[str, Any]) -> None:
        """Append to a journal, without waiting."""
        number = self._counts[game.number] + 1
        self._put(APPEND, (game.number, number, entry, note))
        self._counts[game.number] = number

    async def durable(self) -> None:
        """Wait until all that was appended so far is kept for good, or raise ``StoreError``."""
        if self._committed == self._appended:
            return
        if self.failure is not None:
            raise self.failure
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.put(future)
        await future

    def entries(self, game: Game, after: int = 0) -> Iterator[Kept]:
        """The durable entries of a journal in order, without the first ``after``."""
        query = "SELECT number, entry, note FROM entries WHERE game = ? AND number > ? ORDER BY number LIMIT 5000"
        # In portions, so that no long reading holds up the writer or keeps its log from being folded in.
        while rows := self._all(query, (game.number, after)):
            for number, entry, note in rows:
                yield Kept(entry_from_json(entry, number), json.loads(note))
                after = number

    def decision(self, game: Game, step: int) -> Decision | None:
        """The decision of that step, if it is durable."""
        for (entry,) in self._all("SELECT entry FROM entries WHERE game = ? AND step = ?", (game.number, step)):
            found = entry_from_json(entry)
            return found if isinstance(found, Decision) else None
        return None

    def rounds(self, game: Game, before: int | None = None, limit: int = 50) -> list[KeptRound]:
        """The latest durable rounds, newest first."""
        return latest_rounds(self._all, game, before, limit)

    def save_snapshot(self, game: Game, snapshot: Mapping[str, Any], claim: Claim) -> None:
        """Keep a snapshot in the place of earlier ones, and beside the earlier claims what was claimed with it."""
        self._put(SNAPSHOT, (game.number, json.dumps(snapshot)))
        self._put(CLAIM, (game.number, claim.entries, json.dumps(claim.values)))

    def snapshot(self, game: Game) -> dict[str, Any] | None:
        """The latest durable snapshot."""
        for (snapshot,) in self._all("SELECT snapshot FROM snapshots WHERE game = ?", (game.number,)):
            kept: dict[str, Any] = json.loads(snapshot)
            return kept
        return None

    def claims(self, game: Game) -> list[Claim]:
        """All that was claimed, in order."""
        rows = self._all("SELECT entries, claim FROM claims WHERE game = ? ORDER BY entries", (game.number,))
        return [Claim(entries, json.loads(claim)) for entries, claim in rows]

    def close(self) -> None:
        """Make everything durable and let go of it."""
        if self._writer is not None:
            self._queue.put(None)
            self._writer.join()
            self._writer = None
        self.failure = self.failure or StoreError("the store is closed")
        self._connection.close()
        self._owned.release()

    def _all(self, query: str, values: tuple[Any, ...]) -> list[Any]:
        with self._connected:
            return self._connection.execute(query, values).fetchall()

    def _put(self, statement: str, values: tuple[Any, ...]) -> None:
        if self.failure is not None:
            raise self.failure
        self._appended += 1
        self._queue.put((statement, values))

    def _write(self) -> None:
        closing = False
        while not closing:
            work: list[Work] = []
            waiting: list[asyncio.Future[None]] = []
            found = self._queue.get()
            while True:
                if found is None:
                    closing = True
                elif isinstance(found, tuple):
                    work.append(found)
                else:
                    waiting.append(found)
                if self._queue.empty():
                    break
                found = self._queue.get()
            # After a failure nothing more is taken, but those who come to wait must hear of it.
            self.failure = self.failure or (self._commit(work) if work else None)
            if self.failure is None:
                self._committed += len(work)
            if waiting:
                _tell(waiting, self.failure)

    def _commit(self, work: list[Work]) -> StoreError | None:
        """Write all of it or nothing. After a failure nothing more is taken: a gap would falsify the journal."""
        try:
            with self._connected:
                together = statements(work)
                if len(together) == 1:  # a statement by itself is all or nothing
                    self._connection.execute(*together[0])
                    return None
                self._connection.execute("BEGIN IMMEDIATE")
                for statement, values in together:
                    self._connection.execute(statement, values)
                self._connection.execute("COMMIT")
        except Exception as error:  # whatever it is, those who wait must hear of it
            with self._connected, suppress(sqlite3.Error):
                self._connection.rollback()
            failure = StoreError(f"{self.path} failed ({error}): nothing is decided until the gateway is restarted")
            failure.__cause__ = error
            return failure
        return None


def _tell(waiting: list["asyncio.Future[None]"], failure: StoreError | None) -> None:
    # All who wait do so on one event loop, and it may be gone.
    with suppress(RuntimeError):
        waiting[0].get_loop().call_soon_threadsafe(_release, waiting, failure)


def _release(futures: list["asyncio.Future[None]"], failure: StoreError | None) -> None:
    for future in futures:
        if future.done():  # who waited has left
            continue
        if failure is None:
            future.set_result(None)
        else:
            future.set_exception(failure)


def _connect(path: str, uri: str) -> sqlite3.Connection:
    try:
        return sqlite3.connect(
            uri, uri=True, isolation_level=None, check_same_thread=False, timeout=10.0, cached_statements=2 * MOST_ROWS
        )
    except sqlite3.Error as error:
        raise StoreError(f"{path} cannot be opened as a store ({error})") from error


def _quoted(path: str) -> str:
    return path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
