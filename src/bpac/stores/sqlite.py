"""A store in one SQLite file: write-ahead log, one writer, many entries to a commit."""

import json
import os
import sqlite3
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from typing import Any

from bpac.errors import StoreError
from bpac.routing.decision import Decision
from bpac.routing.journal import Entry, entry_from_json
from bpac.stores.migrations import check, migrate
from bpac.stores.ownership import Ownership
from bpac.stores.private_files import make_private, place_of, refuse_link
from bpac.stores.rounds import latest_rounds
from bpac.stores.statements import APPEND, CLAIM, MOST_ROWS, OPEN, SNAPSHOT
from bpac.stores.store import Claim, Game, Kept, KeptRound
from bpac.stores.writing import Checkpoints, ThreadWriter, TurnWriter, Writer

# What SQLite keeps beside its file.
LOGS = ("-wal", "-shm", "-journal")


class SqliteStore:
    """Journals in a SQLite file that this process owns.

    Entries that wait together share a commit: the busier, the less one costs.
    After a crash the file holds a beginning of what was appended, and all that was durable.

    Parameters
    ----------
    path: the file.
    wait_for_disk: wait in each commit until the disk has it. Without, a power failure may lose the last moments (a
        crash of the process or its death by a signal loses nothing either way).
    """

    def __init__(self, path: str, *, wait_for_disk: bool = False) -> None:
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
                self._open(opened, wait_for_disk)
            except sqlite3.Error as error:
                raise StoreError(f"{self.path} cannot be used as a store ({error}): give another file") from error
            opened.pop_all()  # it is open, and stays so

    def _open(self, opened: ExitStack, wait_for_disk: bool) -> None:
        address = f"file:{_quoted(self.path)}"
        self._writing = opened.enter_context(closing(_connect(self.path, address)))
        self._writing.execute("PRAGMA journal_mode = WAL")
        self._writing.execute(f"PRAGMA synchronous = {'FULL' if wait_for_disk else 'NORMAL'}")
        migrate(self._writing, self.path)
        self._reading = opened.enter_context(closing(_connect(self.path, f"{address}?mode=ro")))
        self._start()
        if wait_for_disk:
            self._writer = ThreadWriter(self._writing, self.path)
        else:
            self._writing.execute("PRAGMA wal_autocheckpoint = 0")
            self._checkpoints = Checkpoints(_connect(self.path, address))
            self._writer = TurnWriter(self._writing, self.path)

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
                if check(store._reading, store.path) == 0:
                    raise StoreError(f"{store.path} is empty: no gateway has used it yet")
                store._start()
            except sqlite3.Error as error:
                raise StoreError(f"{store.path} cannot be read as a store ({error})") from error
            opened.pop_all()
        return store

    def _start(self) -> None:
        self.secret: bytes = self._reading.execute("SELECT value FROM secrets").fetchone()[0]
        rows = self._reading.execute("SELECT number, route, segment, terms FROM games ORDER BY number")
        self._games = [Game(*row) for row in rows]
        # One look into the index for each game: grouping would read every entry there is.
        last = "SELECT number, (SELECT max(number) FROM entries WHERE game = games.number) FROM games"
        self._counts: dict[int, int] = {game: count or 0 for game, count in self._reading.execute(last)}
        # What is written goes through a connection of its own; of those who read one does at a time.
        self._one_reader = threading.Lock()

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
        if self._writer is not None:
            await self._writer.durable()

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
        # Readers first: the last to leave moves what is left of the log into the file, and must be able to write.
        self._reading.close()
        if self._writer is not None:
            self._writer.close()
            if self._checkpoints is not None:
                self._checkpoints.close()
            self._closed = self.failure or StoreError("the store is closed")
            self._writer = None
            self._writing.close()
        self._owned.release()

    def _all(self, query: str, values: tuple[Any, ...]) -> list[Any]:
        with self._one_reader:
            return self._reading.execute(query, values).fetchall()

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
