"""A lock on the file of a store, so that a journal has one writer; it ends with the process, however that ends."""

import os
from contextlib import suppress
from dataclasses import dataclass

from bpac.errors import MissingExtra, StoreInUse
from bpac.stores.private_files import open_private

try:
    import fcntl
except ImportError as error:
    raise MissingExtra("a system with flock (Linux, macOS, BSD)", "gateway") from error


@dataclass(slots=True)
class Ownership:
    """The right to write to a file, held until ``release`` or the end of the process.

    Parameters
    ----------
    path: the file that is owned. The lock is a file beside it that is never removed: another gateway may have it open,
        and would then lock a file that no longer has a name.
    """

    path: str
    _descriptor: int = -1

    def take(self) -> None:
        """Become the owner, or raise ``StoreInUse``."""
        descriptor = open_private(f"{self.path}.lock")
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            owner = os.read(descriptor, 40).decode("ascii", "replace").strip() or "unknown"
            os.close(descriptor)
            raise StoreInUse(
                f"{self.path} is in use by process {owner}: a journal has one writer, or rounds "
                "would be counted twice. Stop or close that one, or use another file"
            ) from error
        self._descriptor = descriptor
        with suppress(OSError):  # the number of the process is only for messages; the disk may be full
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        """Let others become the owner."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
