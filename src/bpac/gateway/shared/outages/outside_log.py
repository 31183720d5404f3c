"""Drafts that are served while Redis is gone, counted in a file of this machine before they are served.

1. Such a draft has no place in the order of its game, so nothing in Redis knows of it. It is in this file, on the disk,
   before its caller gets it. A process that dies has counted all that it served, and perhaps some that it did not.
2. All drafts of one moment are written together. A line that is torn was never acknowledged, and is left out.
3. The file has a name of its own, by which the counts are told to Redis, again and again, as totals that only grow.
"""

import asyncio
import fcntl
import os
import secrets
from collections import Counter
from pathlib import Path

from msgspec import DecodeError
from msgspec.json import decode

from bpac.errors import SettingsError
from bpac.stores.encoding import encode


class OutsideLog:
    """The file.

    Parameters
    ----------
    path: of the file; it is made if it is missing.

    Attributes
    ----------
    identity: the name of the file, which no other has.
    totals: drafts by game.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise SettingsError(
                f"gateway.store_outage.file: {path} is used by another gateway: give each its own"
            ) from error
        except OSError as error:
            raise SettingsError(f"gateway.store_outage.file: {path} cannot be written ({error.strerror})") from error
        self.totals: Counter[str] = Counter()
        self.identity = ""
        self._size = self._read()
        os.ftruncate(self._file, self._size)
        if not self.identity:
            self.identity = secrets.token_hex(8)
            self._append({"file": self.identity})
        self._pending: Counter[str] = Counter()
        self._batch: asyncio.Future[None] | None = None
        self._task: asyncio.Task[None] | None = None

    def _read(self) -> int:
        """Add up what the file says; how many bytes of it are whole lines."""
        size = 0
        with open(self._file, "rb", closefd=False) as file:
            for line in file:
                try:
                    values = decode(line, type=dict[str, str | int])
                except DecodeError:
                    values = None
                if values is None or not line.endswith(b"\n"):
                    if file.read(1):
                        raise SettingsError(f"gateway.store_outage.file: {self.path} is damaged: keep it, name another")
                    break
                size += len(line)
                self.identity = str(values.pop("file", self.identity))
                self.totals.update({name: int(count) for name, count in values.items()})
        return size

    async def add(self, game: str) -> None:
        """Count a draft of a game; ``OSError`` if that cannot be made sure: then it must not be served."""
        self._pending[game] += 1
        if self._batch is None:
            self._batch = asyncio.get_running_loop().create_future()
        batch = self._batch
        if self._task is None:
            self._task = asyncio.create_task(self._write_all())
        await asyncio.shield(batch)

    async def _write_all(self) -> None:
        while (batch := self._batch) is not None:
            pending, self._pending, self._batch = self._pending, Counter(), None
            try:
                await asyncio.to_thread(self._append, dict(pending))
            except Exception as error:  # whatever it is, those who wait learn of it
                batch.set_exception(error if isinstance(error, OSError) else OSError(str(error)))
                batch.exception()  # its callers may have left
            else:
                self.totals.update(pending)
                batch.set_result(None)
        self._task = None

    def _append(self, values: dict[str, str | int] | dict[str, int] | dict[str, str]) -> None:
        line = encode(values).encode() + b"\n"
        try:
            if os.write(self._file, line) != len(line):
                raise OSError("the disk is full")
            os.fsync(self._file)
        except OSError:
            os.ftruncate(self._file, self._size)
            raise
        self._size += len(line)

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._file)
