"""Files that only their owner may read: created so, kept so, and never reached through a symbolic link.

A journal describes the traffic of a company, and its file contains the secret behind decision ids and coins.
"""

import logging
import os
import stat
from contextlib import suppress

from bpac.errors import StoreError

log = logging.getLogger("bpac.stores")

# The mode of a private file, and the bits of a mode that grant others access.
PRIVATE, OTHERS = 0o600, 0o077


def place_of(path: str) -> str:
    """The canonical name of a file: symbolic links among its directories are resolved, the file itself is not.

    >>> place_of("data/../bpac.db") == place_of("bpac.db")
    True
    """
    directory, name = os.path.split(os.path.abspath(path))
    return os.path.join(os.path.realpath(directory), name)


def open_private(path: str) -> int:
    """A descriptor of a file that only its owner may read; it is created if it does not exist.

    Parameters
    ----------
    path: the file; a symbolic link is refused with ``StoreError``, and a file that others may read is made private.
    """
    make_private(path)
    try:
        return os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError as error:
        raise _unusable(path, error) from error


def make_private(path: str, *, create: bool = True) -> None:
    """Make sure that a file is a regular file that only its owner may read, or raise ``StoreError``.

    A file that others may read is made private, with a line in the log.

    Parameters
    ----------
    path: the file.
    create: whether to create it if it does not exist (default: true).
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
        raise StoreError(f"{path} is not a regular file: give the store another place")
    mode = stat.S_IMODE(found.st_mode)
    if mode & OTHERS == 0:
        return
    # By name and not by descriptor: closing a descriptor would release the locks that SQLite has on the file.
    try:
        os.chmod(path, PRIVATE)
    except OSError as error:
        raise StoreError(
            f"{path} can be read by others (mode {mode:o}) and cannot be made private ({error.strerror}): run the "
            f"gateway as the owner of the file, or  chmod 600 {path}"
        ) from error
    log.warning("file was open to others and is private now", extra={"file": path, "mode": f"{mode:o}"})


def refuse_link(path: str) -> None:
    """Raise ``StoreError`` if a file is a symbolic link: it may lead to a file of another user."""
    if os.path.islink(path):
        raise StoreError(
            f"{path} is a symbolic link, and stores do not follow links: give the address of {os.path.realpath(path)} "
            "itself, or remove the link"
        )


def _unusable(path: str, error: OSError) -> StoreError:
    return StoreError(f"{path} cannot be written ({error.strerror}): give the store another place")
