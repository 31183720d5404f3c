"""A store in one SQLite file: write-ahead log, one writer, many entries per commit."""

import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from typing import Any

from bpac.errors import StoreError
from bpac.routing.journal.chain import next_head
from bpac.routing.journal.entries import Entry
from bpac.stores.private_files import make_private, place_of
from bpac.stores.sqlite.adopting import adopting
from bpac.stores.sqlite.archives import Cut, cutting
from bpac.stores.sqlite.reading.checking import quoted, seal
from bpac.stores.sqlite.reading.read_only import ReadOnlySqliteStore
from bpac.stores.sqlite.reading.reading import UNREADABLE, SqliteReader
from bpac.stores.sqlite.recovery.causes import DAMAGED, cause_of
from bpac.stores.sqlite.recovery.recovery import check_writable, prove_complete
from bpac.stores.sqlite.writing.acknowledged import AcknowledgedFile, JournalEnd
from bpac.stores.sqlite.writing.checkpoints import Checkpoints
from bpac.stores.sqlite.writing.commits import CallWriter, ThreadWriter, TurnWriter, commit
from bpac.stores.sqlite.writing.connecting import connect
from bpac.stores.sqlite.writing.migrations import HASH_CHAINS, migrate
from bpac.stores.sqlite.writing.ownership import Ownership
from bpac.stores.sqlite.writing.statements import (
    APPEND,
    CLAIM,
    KEY,
    LOSS,
    OPEN,
    SNAPSHOT,
    UNMARK,
    USE,
    entry_text,
    note_and_check,
    step_of,
)
from bpac.stores.store import Archived, Claim, CoinKey, Game
from bpac.stores.whole_game import WholeGame

log = logging.getLogger("bpac.stores")

# The files that SQLite keeps beside its own.
LOGS = ("-wal", "-shm", "-journal")


class SqliteStore(SqliteReader):
    """Journals in a SQLite file that this process owns.

    Entries that wait at the same time share a commit, so the cost per entry falls with the load.
    After a crash the file contains a prefix of what was appended, with everything that was durable. If it contains
    less, or something else, than the file beside it acknowledges as durable, ``losses`` reports it.

    Parameters
    ----------
    path: the file.
    wait_for_disk: whether each commit waits until the disk has it (default: false). Without it, a power failure may
        lose the last moments; a crash of the process, or a signal that kills it, loses nothing either way.
    commit_each: whether each call commits, for programs without an event loop (default: false).
    """

    def __init__(self, path: str, *, wait_for_disk: bool = False, commit_each: bool = False) -> None:
        place = place_of(path)
        check_writable(place)
        self._options = {"wait_for_disk": wait_for_disk, "commit_each": commit_each}
        self._closed: StoreError | None = None
        self._owned = Ownership(place)
        # The latest key of each game's coins, which may not be durable yet.
        self._keys: dict[int, CoinKey] = {}
        with ExitStack() as opened:
            self._owned.take()
            opened.callback(self._owned.release)
            # Created here and not by SQLite, which gives the files beside it the mode of this one.
            make_private(place)
            for ending in LOGS:
                make_private(place + ending, create=False)
            try:
                self._open(place, opened, wait_for_disk=wait_for_disk, commit_each=commit_each)
            except UNREADABLE as error:
                cause = cause_of(error)
                raise StoreError(
                    f"{place} cannot be used as a store ({quoted(error)}): give another file",
                    cause=cause.what,
                    remedy=cause.remedy,
                ) from error
            opened.pop_all()  # it stays open

    def _open(self, place: str, opened: ExitStack, *, wait_for_disk: bool, commit_each: bool) -> None:
        self._writing = opened.enter_context(closing(connect(place)))
        self._writing.execute("PRAGMA journal_mode = WAL")
        # Until the store is open: an upgrade, or a loss that was found, must not be forgotten.
        self._writing.execute("PRAGMA synchronous = FULL")
        # Checkpoints have a connection of their own: SQLite does not report one that fails in a commit.
        self._writing.execute("PRAGMA wal_autocheckpoint = 0")
        version = migrate(self._writing, place)
        super().__init__(place, opened.enter_context(closing(connect(place, read_only=True))))
        self._report_losses(version)
        self._writing.execute(f"PRAGMA synchronous = {'FULL' if wait_for_disk else 'NORMAL'}")
        self._acknowledged = AcknowledgedFile(place, self.contents.identity, self._ends, self._losses)
        opened.callback(self._acknowledged.close)
        writer = CallWriter if commit_each else ThreadWriter if wait_for_disk else TurnWriter
        self._writer = writer(self._writing, place, self._acknowledged)
        self._checkpoints = Checkpoints(connect(place), self._writer)

    def _report_losses(self, version: int) -> None:
        found = self.contents
        new = version < HASH_CHAINS or not any(end.number for end in found.ends.values())
        if found.backup:
            log.warning(
                "%s is a backup made at %s: a game goes on if %s.head shows that nothing was written to it since, and "
                "all other games begin anew",
                self.path,
                found.backup,
                self.path,
            )
        elif found.acknowledged.doubt and not (found.acknowledged.missing and new):
            log.warning("%s: bpac cannot check whether the last journal entries are missing", found.acknowledged.doubt)
        for loss in found.new_losses:
            log.error("%s: %s", self.path, loss)
        work = [(LOSS, tuple(loss)) for loss in found.new_losses]
        if found.backup:
            # With the losses, or the games would go on after a crash at this point.
            work.append((UNMARK, ()))
        if work:
            commit(self._writing, work)

    @contextmanager
    def together(self) -> Iterator[None]:
        """Commit all that is written in this block at its end, or nothing of it; only with ``commit_each``."""
        if not isinstance(self._writer, CallWriter):
            raise StoreError(f"{self.path} was opened without commit_each, and cannot commit a block together")
        with self._writer.together():
            yield

    def checkpoint(self) -> None:
        """Move what is committed into the file itself, so that a copy of it alone is not taken for a new store."""
        self._writing.execute("PRAGMA wal_checkpoint(PASSIVE)")

    @property
    def end_is_known(self) -> bool:
        """Whether the file beside the store that notes the end of each journal is there, or nothing needs it yet."""
        entries = any(end.number for end in self.contents.ends.values())
        return not (entries and self.contents.acknowledged.doubt)

    @property
    def failure(self) -> StoreError | None:
        """Why nothing more can be written; none as long as the store works."""
        return self._closed or self._writer.failure

    def open_game(self, route: str, segment: str, terms: str) -> Game:
        """Start a new game."""
        # The number of a game that was lost is not used again.
        number = max([0, *self._ends, *(loss.game for loss in self._losses)]) + 1
        game = Game(number, route, segment, terms)
        self._put(OPEN, (number, route, segment, terms, game.head))
        self._put(USE, (number,))
        self._games.append(game)
        self._ends[number] = JournalEnd(0, game.head)
        return game

    def adopt(self, whole: WholeGame) -> None:
        """Take over a game from another store, whose number is free here; only with ``commit_each``."""
        with self.together():
            for work in adopting(whole):
                self._put(*work)

    def resume(self, game: Game) -> None:
        """Note that a game goes on although later ones were opened."""
        self._put(USE, (game.number,))
        self._games.remove(game)
        self._games.append(game)

    def append(self, game: Game, entry: Entry, note: Mapping[str, Any]) -> None:
        """Append to a journal, without waiting."""
        number, head = self._ends[game.number]
        text = entry_text(entry)
        head = next_head(head, text)
        note_text, check_sum = note_and_check(note)
        self._put(APPEND, (game.number, number + 1, step_of(entry), text, note_text, head, check_sum))
        self._ends[game.number] = JournalEnd(number + 1, head)

    async def durable(self) -> None:
        """Wait until all that was appended so far is durable, or raise ``StoreError``."""
        if self._closed is None:
            await self._writer.durable()

    def save_snapshot(self, game: Game, snapshot: Mapping[str, Any], claim: Claim) -> None:
        """Keep a snapshot in place of earlier ones, and a claim in addition to earlier ones."""
        number, head = self._ends[game.number]
        if claim.entries != number:
            raise StoreError(f"a claim about {claim.entries} entries does not fit a journal of {number}")
        text = json.dumps(snapshot)
        self._put(SNAPSHOT, (game.number, text, number, seal(head, text)))
        self._put(CLAIM, (game.number, number, json.dumps(claim.values), head.hex()))

    def cut(self, game: Game, archived: Archived) -> None:
        """Cut the first entries of a journal, which are in an archive; only with ``commit_each``."""
        with self.together():
            for work in cutting(game, archived):
                self._put(*work)
        self._cuts[game.number] = Cut(archived.entries, archived.head, archived.file)

    def length(self, game: Game) -> int:
        """The number of entries of a journal, those archived included."""
        return self._ends[game.number].number

    def number_of_step(self, game: Game, step: int) -> int:
        """The number of the entry that decides a step; ``StoreError`` if it is not in the store."""
        for (number,) in self._all("SELECT number FROM entries WHERE game = ? AND step = ?", (game.number, step)):
            return int(number)
        raise StoreError(f"{self.path} is damaged: the decision of step {step} of game {game.number} is missing")

    def shrink(self) -> None:
        """Give the space of what was cut back to the file system; only while nothing else uses the file."""
        self._writing.execute("VACUUM")

    def keep_key(self, game: Game, key: CoinKey) -> None:
        """Keep the key of a block of coins, without waiting: it is durable before what is appended after it."""
        self._put(KEY, (game.number, *key))
        self._keys[game.number] = key

    def key(self, game: Game, step: int) -> CoinKey | None:
        """The key of the block that a step belongs to; none if its coin does not come from a key."""
        latest = self._keys.get(game.number)
        return latest if latest is not None and latest.first_step <= step else super().key(game, step)

    def reopened(self) -> "SqliteStore":
        """The same store, opened again after it failed; ``StoreError`` if it cannot prove that nothing was lost."""
        check_writable(self.path)
        ends = self._acknowledged.ends
        with closing(ReadOnlySqliteStore(self.path)) as found:
            count = prove_complete(found, self.secret, ends)
        self.close()
        again = SqliteStore(self.path, **self._options)
        log.info("the store was opened again, and nothing is missing", extra={"file": self.path, "entries": count})
        return again

    def close(self) -> None:
        """Make everything durable and close all files."""
        # Readers first: the last connection that is closed moves the rest of the log into the file, so it must be able
        # to write.
        with self._one_reader:
            self._reading.close()
        if self._closed is None:
            self._writer.close()
            self._checkpoints.close()
            self._closed = self._writer.failure or StoreError("the store is closed")
            self._writing.close()
            self._acknowledged.close()
        self._owned.release()

    def _all(self, query: str, values: tuple[Any, ...]) -> list[Any]:
        try:
            return super()._all(query, values)
        except StoreError as error:
            # What cannot be read must not be written to any more.
            if error.cause == DAMAGED.what and error.__cause__ is not None and hasattr(self, "_writer"):
                self._writer.fail(error.__cause__)
            raise

    def _put(self, statement: str, values: tuple[Any, ...]) -> None:
        if self.failure is not None:
            raise self.failure
        self._writer.put((statement, values))
