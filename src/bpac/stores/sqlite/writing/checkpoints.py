"""Checkpoints of a SQLite store: committed data is moved from the write-ahead log into the file."""

import errno
import os
import sqlite3
import threading

from bpac.errors import StoreError
from bpac.stores.sqlite.reading.read_back import ReadBack
from bpac.stores.sqlite.writing.commits import Writer


class Checkpoints:
    """Moves committed data from the write-ahead log into the file, in a thread of its own.

    A checkpoint waits for the disk, so it must not happen in a commit, where SQLite would do it. If it fails, the
    writer accepts nothing more: it is then uncertain what the operating system has kept of the log.

    Parameters
    ----------
    connection: used here only.
    writer: fails if a checkpoint does.
    every: seconds between two checkpoints (default: 1).
    most_pages: pages of the log; when it is longer, commits wait for a moment so that it can start again from its
        beginning (default: 16384).
    """

    def __init__(
        self, connection: sqlite3.Connection, writer: Writer, every: float = 1.0, most_pages: int = 16_384
    ) -> None:
        self._connection = connection
        self._writer = writer
        # While a checkpoint waits for a reader, commits wait for the checkpoint: so not for long.
        connection.execute("PRAGMA busy_timeout = 50")
        self._place = str(connection.execute("PRAGMA database_list").fetchone()[2])
        self._file = _identity(self._place)
        self._read_back = ReadBack(self._place)
        self._every = every
        self._most_pages = most_pages
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="checkpoints", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop; the rest of the log is moved when the last connection is closed."""
        self._ending.set()
        self._thread.join()
        # Closing would not report an error.
        self._checkpoint("PASSIVE")
        self._connection.close()

    def _run(self) -> None:
        while not self._ending.wait(self._every):
            if self._checkpoint("PASSIVE") > self._most_pages:
                self._checkpoint("RESTART")

    def _checkpoint(self, how: str) -> int:
        """Move what can be moved now, and return the number of pages in the log."""
        try:
            self._check_place()
            self._check_contents()
            _, pages, _ = self._connection.execute(f"PRAGMA wal_checkpoint({how})").fetchone()
            return int(pages)
        except OSError as error:
            self._writer.fail(error)
            return 0
        except sqlite3.Error as error:
            # A log that is in use is moved later; its data is durable either way.
            if _code(error) not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                self._writer.fail(error)
            return 0

    def _check_contents(self) -> None:
        """Raise an error of SQLite if the file is damaged where it was written last."""
        try:
            self._read_back.check(self._writer.durable_ends())
        except StoreError:
            pass  # no further connection at present, for example because too many files are open
        except sqlite3.Error as error:
            # Any other error says nothing about what is in the file; if it lasts, commits and checkpoints find it.
            if _code(error) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
                raise

    def _check_place(self) -> None:
        """Raise ``OSError`` if the file is no longer where it was: what is written to it would be lost."""
        if _identity(self._place) != self._file:
            raise FileNotFoundError(errno.ENOENT, "the file was moved, deleted or replaced", self._place)


def _identity(path: str) -> tuple[int, int]:
    found = os.stat(path)
    return found.st_dev, found.st_ino


def _code(error: sqlite3.Error) -> int:
    """The primary error code of SQLite."""
    return (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
