"""An append-only file of JSON lines, written by one process at a time, that loses nothing if the process is killed."""

import fcntl
import json
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from io import FileIO
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

from bpac.errors import BpacError, SettingsError, TableError

FORMAT = 1
# The operating system has each line as soon as it is written, so a killed process loses none. If the machine itself
# goes down, the lines of this many seconds may be lost.
SYNC_SECONDS = 2.0
_BLOCK = 1 << 16


@dataclass(eq=False, slots=True)
class AppendOnlyFile:
    """An append-only file that is open inside the ``with`` block.

    Opening locks the file, creates it if it does not exist, and removes an incomplete last line. The first line of the
    file contains the settings that the other lines were made with. A file with other settings is refused and stays
    unchanged.

    Parameters
    ----------
    path: the file.
    kind: what the lines are, for example ``answers``.
    settings: everything that the lines depend on, as JSON values.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with AppendOnlyFile(Path(folder, "a.jsonl"), "answers", {"model": "m"}) as file:
    ...         file.append({"id": "1"})
    ...     list(read_lines(Path(folder, "a.jsonl"), "answers"))
    [{'id': '1'}]
    """

    path: Path
    kind: str
    settings: Mapping[str, Any]
    _file: FileIO | None = field(default=None, init=False, repr=False)
    _synced: float = field(default=0.0, init=False, repr=False)

    def __enter__(self) -> Self:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # Unbuffered, because this process may be killed at any time.
        file = FileIO(self.path, "a+")
        try:
            self._lock(file)
            self._begin(file)
        except BaseException:
            file.close()
            raise
        self._file, self._synced = file, time.monotonic()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        file, self._file = self._file, None
        if file is not None:
            with file:
                os.fsync(file.fileno())

    def append(self, line: Mapping[str, Any]) -> None:
        """Append a line; it is not lost even if this process is killed immediately afterwards."""
        if self._file is None:
            raise BpacError(f"{self.path} is not open: use  with AppendOnlyFile(…) as file: …")
        _write(self._file, line)
        if time.monotonic() - self._synced > SYNC_SECONDS:
            os.fsync(self._file.fileno())
            self._synced = time.monotonic()

    def _lock(self, file: FileIO) -> None:
        try:
            # The kernel releases the lock when the process ends, even if it is killed.
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise BpacError(
                f"{self.path} is being written by another process: wait until it ends, or stop it"
            ) from error

    def _begin(self, file: FileIO) -> None:
        head = {"bpac": self.kind, "format": FORMAT, "settings": self.settings}
        # As JSON returns them: tuples become lists.
        settings = json.loads(json.dumps(self.settings))
        start = _first_line(file)
        # An incomplete first line is replaced, too: such a file contains nothing else.
        if not start.endswith(b"\n") and json.dumps(head, separators=(",", ":")).encode().startswith(start):
            file.truncate(0)
            _write(file, head)
            return
        differing = _differences(_settings(self.path, start, self.kind), settings)
        if differing:
            raise SettingsError(
                f"{self.path} was started with other settings: {'; '.join(differing)}. "
                "Use the old settings, or choose another file for --out"
            )
        _drop_incomplete_line(file)


def read_settings(path: Path, kind: str) -> dict[str, Any]:
    """The settings that the lines of a file were made with."""
    with _opened(path) as file:
        return _settings(path, file.readline(), kind)


def read_lines(path: Path, kind: str) -> Iterator[dict[str, Any]]:
    """The lines of a file, in order, without a last line that is incomplete."""
    with _opened(path) as file:
        _settings(path, file.readline(), kind)
        damage = ""
        for number, data in enumerate(file, start=2):
            if damage:
                raise TableError(damage)
            line = _parsed(data)
            if line is None:
                damage = f"{path}: line {number} is damaged: {data[:40]!r}. Delete the line and run the command again"
            else:
                yield line


def _opened(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as error:
        raise TableError(f"{path}: cannot be read ({error.strerror})") from error


def _settings(path: Path, first: bytes, kind: str) -> dict[str, Any]:
    head = _parsed(first) or {}
    if head.get("bpac") != kind or not isinstance(head.get("settings"), dict):
        raise TableError(f"{path} is not a file of {kind} written by bpac: its first line is {first[:60]!r}")
    if head.get("format") != FORMAT:
        raise TableError(f"{path} has format {head.get('format')}; this version of bpac reads format {FORMAT}")
    settings: dict[str, Any] = head["settings"]
    return settings


def _differences(then: Any, now: Any, at: str = "") -> list[str]:
    if isinstance(then, dict) and isinstance(now, dict):
        names = dict.fromkeys((*then, *now))
        return [
            found
            for name in names
            for found in _differences(then.get(name), now.get(name), f"{at}.{name}" if at else name)
        ]
    return [] if then == now else [f"{at} was {json.dumps(then)}, now {json.dumps(now)}"]


def _parsed(data: bytes) -> dict[str, Any] | None:
    try:
        line = json.loads(data) if data.endswith(b"\n") else None
    except ValueError:
        return None
    return line if isinstance(line, dict) else None


def _write(file: FileIO, line: Mapping[str, Any]) -> None:
    data = memoryview(json.dumps(line, separators=(",", ":"), allow_nan=False).encode() + b"\n")
    while data:
        data = data[file.write(data) or 0 :]


def _first_line(file: FileIO) -> bytes:
    file.seek(0)
    found = b""
    while b"\n" not in found and (block := file.read(_BLOCK)):
        found += block
    return found[: found.find(b"\n") + 1] or found


def _drop_incomplete_line(file: FileIO) -> None:
    end = file.seek(0, os.SEEK_END)
    tail, start = b"", end
    # Read backwards to the line feed before the last line; the first line is complete, so there is one.
    while b"\n" not in tail[:-1] and start > 0:
        step = min(_BLOCK, start)
        start = file.seek(start - step)
        tail = file.read(step) + tail
    last = tail[tail.rfind(b"\n", 0, len(tail) - 1) + 1 :]
    # A power cut can leave a line that ends with a line feed but is not JSON.
    if _parsed(last) is None:
        file.truncate(end - len(last))
