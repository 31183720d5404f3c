"""Files that nobody else may read: made so, kept so, and never reached through a link.

A journal tells how the traffic of a company went, and its file holds the secret that names decisions and draws coins.
"""

import logging
import os
import stat
from contextlib import suppress

from bpac.errors import StoreError

log = logging.getLogger("bpac.stores")

# Read and written by its owner; and what others might do with it.
PRIVATE, OTHERS = 0o600, 0o077


def place_of(path: str) -> str:
    """The one name of a file: links among its directories are followed, the file itself may be none.

    >>> place_of("/tmp/../tmp/bpac.db").endswith("/tmp/bpac.db")
    True
    """
    directory, name = os.path.split(os.path.abspath(path))
    return os.path.join(os.path.realpath(directory), name)


def open_private(path: str) -> int:
    """A descriptor of a file that only its owner may read; it is made if it is not there.

    Parameters
    ----------
    path: the file; a link is refused with ``StoreError``, and what others may read is made private.
    """
    make_private(path)
    try:
        return os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError as error:
        raise _unusable(path, error) from error


def make_private(path: str, *, create: bool = True) -> None:
    """See to it that a file is an ordinary one and that only its owner may read it; ``StoreError`` if that cannot be.

    A file that others may read is made private, and a line in the log says so.

    Parameters
    ----------
    path: the file.
    create: whether to make it if it is not there.
    """
    try:
        if create:
            with suppress(FileExistsError):
                os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE))
                return
        found = os.lstat(path)
    except FileNotFoundError as error:
        if create:
            raise _unusable(path, error) from error
        return
    except OSError as error:
        raise _unusable(path, error) from error
    refuse_link(path)
    if not stat.S_ISREG(found.st_mode):
        raise StoreError(f"{path} is no ordinary file: give the store another place")
    mode = stat.S_IMODE(found.st_mode)
    if mode & OTHERS == 0:
        return
    # By its name and not by a descriptor: to close one would take from SQLite the locks that it has on the file.
    try:
        os.chmod(path, PRIVATE)
    except OSError as error:
        raise StoreError(
            f"{path} can be read by others (mode {mode:o}) and cannot be made private ({error.strerror}): run the "
            f"gateway as the owner of the file, or  chmod 600 {path}"
        ) from error
    log.warning("file was open to others and is private now", extra={"file": path, "mode": f"{mode:o}"})


def refuse_link(path: str) -> None:
    """Raise ``StoreError`` if a file is a symbolic link: it may lead to a file of somebody else."""
    if os.path.islink(path):
        raise StoreError(
            f"{path} is a symbolic link, and stores do not follow links: give the address of {os.path.realpath(path)} "
            "itself, or remove the link"
        )


def _unusable(path: str, error: OSError) -> StoreError:
    return StoreError(f"{path} cannot be written ({error.strerror}): give the store another place")
