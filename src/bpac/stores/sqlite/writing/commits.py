"""Writers of a SQLite store: they commit in order, many entries at a time, and wake up those who wait for a commit."""

import asyncio
import logging
import os
import sqlite3
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from queue import SimpleQueue

from bpac.errors import StoreError
from bpac.stores.sqlite.reading.checking import quoted
from bpac.stores.sqlite.recovery.causes import cause_of
from bpac.stores.sqlite.writing.acknowledged import AcknowledgedFile, JournalEnd
from bpac.stores.sqlite.writing.statements import APPEND, Work, statements

log = logging.getLogger("bpac.stores")

Waiting = list["asyncio.Future[None]"]


class Writer(ABC):
    """Writes to a store. After a failure it accepts nothing more: a gap would falsify the journal.

    Parameters
    ----------
    connection: used here only.
    path: of the file, for errors.
    acknowledged: gets the end of each journal once it is committed.
    """

    def __init__(self, connection: sqlite3.Connection, path: str, acknowledged: AcknowledgedFile) -> None:
        self.failure: StoreError | None = None
        self._connection = connection
        self._path = path
        self._acknowledged = acknowledged

    def durable_ends(self) -> dict[int, JournalEnd]:
        """The last durable entry of each journal."""
        return dict(self._acknowledged.ends)

    @abstractmethod
    def put(self, work: Work) -> None:
        """Accept a statement to be written, without waiting."""

    @abstractmethod
    async def durable(self) -> None:
        """Wait until everything that was put so far is durable, or raise ``StoreError``."""

    @abstractmethod
    def close(self) -> None:
        """Write what is pending."""

    def fail(self, error: BaseException) -> None:
        """Accept nothing more, and log why."""
        if self.failure is None:
            why = str(error) or type(error).__name__
            cause = cause_of(error)
            failure = StoreError(
                f"{self._path} failed ({why}): nothing is decided until the gateway is restarted or the file is opened "
                "again",
                cause=cause.what,
                remedy=cause.remedy,
            )
            failure.__cause__ = error
            self.failure = failure
            log.error(
                "the store failed: nothing is decided until it can be written again",
                extra={"file": self._path, "cause": cause.what, "remedy": cause.remedy, "error": quoted(error)},
            )

    def _commit(self, work: list[Work]) -> None:
        if not work or self.failure is not None:
            return
        try:
            commit(self._connection, work)
        except Exception as error:  # whatever it is, those who wait must get it
            self.fail(error)
            return
        # The last entry of each game.
        for values in {values[0]: values for statement, values in work if statement is APPEND}.values():
            self._acknowledged.update(values[0], JournalEnd(values[1], values[5]))


class CallWriter(Writer):
    """Commits within the call that submits the work, for programs without an event loop."""

    def __init__(self, connection: sqlite3.Connection, path: str, acknowledged: AcknowledgedFile) -> None:
        super().__init__(connection, path, acknowledged)
        self._process = os.getpid()
        self._collected: list[Work] | None = None

    def put(self, work: Work) -> None:
        """Commit this work, or raise ``StoreError``."""
        if self._collected is not None:
            self._collected.append(work)
        else:
            self._commit_now([work])

    @contextmanager
    def together(self) -> Iterator[None]:
        """Commit all that is put in this block at its end, or nothing of it."""
        self._collected = []
        try:
            yield
        except BaseException as error:
            # The caller may have acted on what was put: the file is behind it. That is no fault of the file, so nothing
            # is logged.
            self.failure = self.failure or StoreError(f"{self._path}: a block of work was given up: open it again")
            self.failure.__cause__ = self.failure.__cause__ or error
            raise
        finally:
            work, self._collected = self._collected, None
        self._commit_now(work)

    async def durable(self) -> None:
        """Nothing to wait for; ``StoreError`` if a commit failed."""
        if self.failure is not None:
            raise self.failure

    def close(self) -> None:
        """Nothing is left to write."""

    def _commit_now(self, work: list[Work]) -> None:
        if os.getpid() != self._process:
            raise StoreError(
                f"{self._path} was opened by process {self._process}, and this is another one: a file belongs to one "
                "process, so open it after the fork"
            )
        if self.failure is None:
            try:
                self._commit(work)
            except BaseException as error:  # an interrupt: whether it was committed is not known
                self.fail(error)
                raise
        if self.failure is not None:
            raise self.failure


class TurnWriter(Writer):
    """Writes in the thread of the event loop, within one turn of it.

    For commits that do not wait for the disk: they take less time than handing them to another thread. The first
    ``durable`` of a turn commits at once; everything else in the turn goes into one commit at its end.
    """

    def __init__(self, connection: sqlite3.Connection, path: str, acknowledged: AcknowledgedFile) -> None:
        super().__init__(connection, path, acknowledged)
        self._work: list[Work] = []
        self._waiting: Waiting = []
        self._written = False

    def put(self, work: Work) -> None:
        """Accept a statement to be written, without waiting."""
        if self.failure is not None:
            raise self.failure
        self._work.append(work)
        if len(self._work) == 1:
            try:
                asyncio.get_running_loop().call_soon(self._end_turn)
            except RuntimeError:  # no loop is running
                self._end_turn()

    async def durable(self) -> None:
        """Wait until everything that was put so far is durable, or raise ``StoreError``."""
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
                loop.call_soon(self._end_turn)  # it may have been put in the last turn of another loop
            future: asyncio.Future[None] = loop.create_future()
            self._waiting.append(future)
            await future

    def close(self) -> None:
        """Write what is pending."""
        self._end_turn()

    def _end_turn(self) -> None:
        self._written = False
        self._write()

    def _write(self) -> None:
        work, self._work = self._work, []
        waiting, self._waiting = self._waiting, []
        self._commit(work)
        _wake(waiting, self.failure)


class ThreadWriter(Writer):
    """Writes in a thread of its own, for commits that wait for the disk.

    Everything that is put while a commit is under way goes into the next one.
    """

    def __init__(self, connection: sqlite3.Connection, path: str, acknowledged: AcknowledgedFile) -> None:
        super().__init__(connection, path, acknowledged)
        # Statements, and between them the futures of those who wait until what came before is durable.
        self._queue: SimpleQueue[Work | asyncio.Future[None] | None] = SimpleQueue()
        self._put = 0
        self._committed = 0
        self._thread = threading.Thread(target=self._write, name="journal", daemon=True)
        self._thread.start()

    def put(self, work: Work) -> None:
        """Accept a statement to be written, without waiting."""
        if self.failure is not None:
            raise self.failure
        self._put += 1
        self._queue.put(work)

    async def durable(self) -> None:
        """Wait until everything that was put so far is durable, or raise ``StoreError``."""
        if self._committed == self._put:
            return
        if self.failure is not None:
            raise self.failure
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.put(future)
        await future

    def close(self) -> None:
        """Write what is pending."""
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
            # After a failure nothing more is written, but those who wait must get the error.
            self._commit(work)
            if self.failure is None:
                self._committed += len(work)
            if waiting:
                # All futures belong to one event loop, which may be closed.
                with suppress(RuntimeError):
                    waiting[0].get_loop().call_soon_threadsafe(_wake, waiting, self.failure)


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


def _wake(waiting: Waiting, failure: StoreError | None) -> None:
    for future in waiting:
        if future.done():  # cancelled
            continue
        if failure is None:
            future.set_result(None)
        else:
            future.set_exception(failure)
