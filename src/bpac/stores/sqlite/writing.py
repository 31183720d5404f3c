"""Writers of a SQLite store: what was put is committed in order, many entries at a time, and who waits is told."""

import asyncio
import logging
import sqlite3
import threading
from abc import ABC, abstractmethod
from contextlib import suppress
from queue import SimpleQueue

from bpac.errors import StoreError
from bpac.stores.sqlite.acknowledged import End, Noting
from bpac.stores.sqlite.statements import APPEND, Work, statements

log = logging.getLogger("bpac.stores")

Waiting = list["asyncio.Future[None]"]


class Writer(ABC):
    """Writes to a store. After a failure it takes nothing more: a gap would falsify the journal.

    Parameters
    ----------
    connection: used by nobody else.
    path: of the file, for errors.
    noting: where the end of each journal is noted once it is committed.
    """

    def __init__(self, connection: sqlite3.Connection, path: str, noting: Noting) -> None:
        self.failure: StoreError | None = None
        self._connection = connection
        self._path = path
        self._noting = noting

    @abstractmethod
    def put(self, work: Work) -> None:
        """Take in what is to be written, without waiting."""

    @abstractmethod
    async def durable(self) -> None:
        """Wait until all that was put so far is kept for good, or raise ``StoreError``."""

    @abstractmethod
    def close(self) -> None:
        """Write what is left."""

    def fail(self, error: Exception) -> None:
        """Take nothing more, and say why."""
        if self.failure is None:
            failure = StoreError(f"{self._path} failed ({error}): nothing is decided until the gateway is restarted")
            failure.__cause__ = error
            log.error("the store failed: nothing is decided until the gateway is restarted", exc_info=failure)
            self.failure = failure

    def _commit(self, work: list[Work]) -> None:
        if not work or self.failure is not None:
            return
        try:
            commit(self._connection, work)
        except Exception as error:  # whatever it is, those who wait must hear of it
            self.fail(error)
            return
        # The last entry of each game.
        for values in {values[0]: values for statement, values in work if statement is APPEND}.values():
            self._noting.note(values[0], End(values[1], values[5]))


class CallWriter(Writer):
    """Commits within the call that hands in the work, for programs without an event loop."""

    def put(self, work: Work) -> None:
        """Commit this work, or raise ``StoreError``."""
        if self.failure is None:
            self._commit([work])
        if self.failure is not None:
            raise self.failure

    async def durable(self) -> None:
        """Nothing to wait for; ``StoreError`` if a commit failed."""
        if self.failure is not None:
            raise self.failure

    def close(self) -> None:
        """Nothing is left to write."""


class TurnWriter(Writer):
    """Writes by itself, within the turn of the event loop.

    For commits that do not wait for the disk: they take less time than it takes to tell another thread of them. The
    first to wait in a turn need not wait; whatever else comes up in it goes into one commit at its end.
    """

    def __init__(self, connection: sqlite3.Connection, path: str, noting: Noting) -> None:
        super().__init__(connection, path, noting)
        self._work: list[Work] = []
        self._waiting: Waiting = []
        self._written = False

    def put(self, work: Work) -> None:
        """Take in what is to be written, without waiting."""
        if self.failure is not None:
            raise self.failure
        self._work.append(work)
        if len(self._work) == 1:
            try:
                asyncio.get_running_loop().call_soon(self._end_turn)
            except RuntimeError:  # no loop, no turn
                self._end_turn()

    async def durable(self) -> None:
        """Wait until all that was put so far is kept for good, or raise ``StoreError``."""
        if self.failure is not None:
            raise self.failure
        if self._work:
            loop = asyncio.get_running_loop()
            if not self._written:
                self._write()
                self._written = True
                if self.failure is not None:
                    raise self.failure
                return
            if not self._waiting:
                loop.call_soon(self._end_turn)  # the turn in which it was put may have been another loop's last
            future: asyncio.Future[None] = loop.create_future()
            self._waiting.append(future)
            await future

    def close(self) -> None:
        """Write what is left."""
        self._end_turn()

    def _end_turn(self) -> None:
        self._written = False
        self._write()

    def _write(self) -> None:
        work, self._work = self._work, []
        waiting, self._waiting = self._waiting, []
        self._commit(work)
        _answer(waiting, self.failure)


class ThreadWriter(Writer):
    """Writes in a thread of its own, for commits that wait for the disk.

    Whatever is put while a commit is under way goes into the next one.
    """

    def __init__(self, connection: sqlite3.Connection, path: str, noting: Noting) -> None:
        super().__init__(connection, path, noting)
        # Work, and between it the futures of those who wait until what came before is kept.
        self._queue: SimpleQueue[Work | asyncio.Future[None] | None] = SimpleQueue()
        self._put = 0
        self._committed = 0
        self._thread = threading.Thread(target=self._write, name="journal", daemon=True)
        self._thread.start()

    def put(self, work: Work) -> None:
        """Take in what is to be written, without waiting."""
        if self.failure is not None:
            raise self.failure
        self._put += 1
        self._queue.put(work)

    async def durable(self) -> None:
        """Wait until all that was put so far is kept for good, or raise ``StoreError``."""
        if self._committed == self._put:
            return
        if self.failure is not None:
            raise self.failure
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.put(future)
        await future

    def close(self) -> None:
        """Write what is left."""
        self._queue.put(None)
        self._thread.join()

    def _write(self) -> None:
        closing = False
        while not closing:
            work: list[Work] = []
            waiting: Waiting = []
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
            self._commit(work)
            if self.failure is None:
                self._committed += len(work)
            if waiting:
                # All who wait do so on one event loop, and it may be gone.
                with suppress(RuntimeError):
                    waiting[0].get_loop().call_soon_threadsafe(_answer, waiting, self.failure)


def commit(connection: sqlite3.Connection, work: list[Work]) -> None:
    """Write all of it or nothing."""
    try:
        together = statements(work)
        if len(together) == 1:  # a statement by itself is all or nothing
            connection.execute(*together[0])
            return
        connection.execute("BEGIN IMMEDIATE")
        for statement, values in together:
            connection.execute(statement, values)
        connection.execute("COMMIT")
    except Exception:
        with suppress(sqlite3.Error):
            connection.rollback()
        raise


def _answer(waiting: Waiting, failure: StoreError | None) -> None:
    for future in waiting:
        if future.done():  # who waited has left
            continue
        if failure is None:
            future.set_result(None)
        else:
            future.set_exception(failure)
