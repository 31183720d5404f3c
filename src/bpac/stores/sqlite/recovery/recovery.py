"""Whether the file of a store can be written, and whether it still has everything that was durable.

A store that has failed is opened again like after a crash: what is in the file is the truth, and what was not durable
was never acted on. Before that, the file must prove that nothing was lost:

1. There is room on its disk, and it may be written.
2. It is the same store: it has the same secret.
3. Each journal is read from its first entry along its hash chain, and the last entry that this process has seen durable
   has the head that this process remembers. The file beside the store is not needed for it.
"""

import errno
import os
import resource
from collections.abc import Mapping
from contextlib import suppress

from bpac.errors import StoreError
from bpac.stores.sqlite.reading.reading import SqliteReader
from bpac.stores.sqlite.recovery.causes import MOVED, NO_DIRECTORY, TOO_LARGE, Cause, cause_of
from bpac.stores.sqlite.writing.acknowledged import JournalEnd

# Bytes that must be free: with less, the next requests would fail again.
ROOM = 2**20


def check_writable(path: str) -> None:
    """Raise ``StoreError`` if there is no room for a store, or if it may not be written.

    Parameters
    ----------
    path: the file of the store; it need not exist.
    """
    probe = f"{path}.{os.getpid()}.probe"
    try:
        try:
            descriptor = os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            try:
                written = os.write(descriptor, bytes(ROOM))
            finally:
                os.close(descriptor)
        finally:
            with suppress(OSError):
                os.unlink(probe)
    except OSError as error:
        cause = NO_DIRECTORY if isinstance(error, FileNotFoundError) else cause_of(error)
        raise unusable(path, error.strerror or str(error), cause) from error
    if written < ROOM:  # the rest would not have fitted
        error_number = errno.EFBIG if _largest_file() < ROOM else errno.ENOSPC
        raise unusable(path, os.strerror(error_number), cause_of(OSError(error_number, "")))
    if os.path.exists(path):
        # By name: closing a descriptor of the file would release the locks that SQLite has on it.
        if not os.access(path, os.W_OK):
            raise unusable(path, os.strerror(errno.EACCES), cause_of(OSError(errno.EACCES, "")))
        if os.path.getsize(path) + ROOM > _largest_file():
            raise unusable(path, os.strerror(errno.EFBIG), TOO_LARGE)


def prove_complete(found: SqliteReader, secret: bytes, ends: Mapping[int, JournalEnd]) -> int:
    """The number of entries that were read back; ``StoreError`` if anything that was durable is missing.

    Parameters
    ----------
    found: the store as it is in the file.
    secret: of the store that failed.
    ends: the last durable entry of each of its journals.
    """
    if found.secret != secret:
        raise unusable(found.path, "it is another store", MOVED)
    games, count = {game.number: game for game in found.games()}, 0
    for number, end in ends.items():
        if not end.number:
            continue
        head = None
        if number in games:
            cut = found.contents.cuts.get(number)  # the first entries may be archived
            for position, link in enumerate(found.links(games[number]), start=1 + (cut.entries if cut else 0)):
                count += 1
                if position == end.number:
                    head = link.head
        if head != end.head:
            raise StoreError(
                f"{found.path} lacks entries of game {number} that were durable: put the right file back, or restart "
                "the gateway, which begins a new game with a threshold of 0",
                cause="entries that were durable are missing",
                remedy="put the right file back, or restart the gateway, which begins new games",
            )
    return count


def unusable(path: str, why: str, cause: Cause) -> StoreError:
    """The error of a store that cannot be used."""
    return StoreError(
        f"{path} cannot be used as a store ({why}): {cause.what}; {cause.remedy}",
        cause=cause.what,
        remedy=cause.remedy,
    )


def _largest_file() -> float:
    """The size in bytes that this process may give a file."""
    soft, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    return float("inf") if soft == resource.RLIM_INFINITY else soft
