"""Why a store cannot be used, in words for an operator, and what to do about it."""

import errno
import sqlite3
from typing import NamedTuple


class Cause(NamedTuple):
    """Why a store cannot be used.

    Parameters
    ----------
    what: the cause, without the name of the file.
    remedy: what to do.
    """

    what: str
    remedy: str


FULL = Cause("the disk is full", "free space on the disk of the store, or raise the quota")
READ_ONLY = Cause(
    "the file or its disk is read-only",
    "make the file and its directory writable for the gateway's user, and check whether the disk was mounted read-only "
    "after an error; or give the store another place",
)
DAMAGED = Cause(
    "the database is damaged",
    "keep a copy of the file for an analysis, check the disk, and restore the file from a copy, or give the store "
    "another file, with which new games begin",
)
TOO_LARGE = Cause("the file may not grow", "raise the limit on the size of files (ulimit -f) of the gateway's process")
MOVED = Cause("the file was moved, deleted or replaced", "put the file back and restart the gateway")
NO_DIRECTORY = Cause("its directory does not exist", "create the directory, or give the store another place")
IN_USE = Cause("another program has locked the file", "end the program that has the file open")
CHANGED = Cause(
    "another program has written to the journal", "end that program, and restore the file from a copy if it is damaged"
)
DISK = Cause(
    "the disk reports an error",
    "check free space, quotas, the limit on the size of files (ulimit -f) and the health of the disk",
)
OTHER = Cause("the database reports an error", "see the error, and check the file, its directory and its disk")

_BY_CODE = {
    sqlite3.SQLITE_FULL: FULL,
    sqlite3.SQLITE_READONLY: READ_ONLY,
    sqlite3.SQLITE_PERM: READ_ONLY,
    sqlite3.SQLITE_CANTOPEN: READ_ONLY,
    sqlite3.SQLITE_CORRUPT: DAMAGED,
    sqlite3.SQLITE_NOTADB: DAMAGED,
    sqlite3.SQLITE_IOERR: DISK,
    sqlite3.SQLITE_BUSY: IN_USE,
    sqlite3.SQLITE_LOCKED: IN_USE,
    sqlite3.SQLITE_CONSTRAINT: CHANGED,
}
_BY_ERRNO = {
    errno.ENOSPC: FULL,
    errno.EDQUOT: FULL,
    errno.EROFS: READ_ONLY,
    errno.EACCES: READ_ONLY,
    errno.EPERM: READ_ONLY,
    errno.EFBIG: TOO_LARGE,
    errno.ENOENT: MOVED,
    errno.EIO: DISK,
}


def cause_of(error: BaseException) -> Cause:
    """The cause behind an error of SQLite or of the operating system.

    >>> cause_of(OSError(errno.ENOSPC, "No space left on device")).what
    'the disk is full'
    """
    if isinstance(error, sqlite3.Error):
        return _BY_CODE.get((getattr(error, "sqlite_errorcode", None) or 0) & 0xFF, OTHER)
    if isinstance(error, OSError):
        return _BY_ERRNO.get(error.errno or 0, DISK)
    return OTHER
