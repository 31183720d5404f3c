"""A file of JSON lines that is only ever added to, by one process at a time, and survives being killed."""

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
# A line is with the operating system as soon as it is written, so a killed process loses none. So many seconds' worth
# may be lost when the machine itself goes down.
SYNC_SECONDS = 2.0
_BLOCK = 1 << 16


@dataclass(eq=False, slots=True)
class AppendOnlyFile:
    """The file, open to be added to, for as long as the ``with`` block lasts.

    To open it locks it, begins it if need be, and drops a last line that was cut off while it was being written. The
    first line says what the others were made with: a file that was made with other settings is refused, unchanged.

    Parameters
    ----------
    path: the file.
    kind: what its lines are: ``answers``, say.
    settings: all that its lines depend on, as JSON values.

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
        # Unbuffered: what was appended must not wait in this process, which may be killed.
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
        """Add a line; it is kept even if this process is killed right after."""
        if self._file is None:
            raise BpacError(f"{self.path} is not open: use it as  with AppendOnlyFile(…) as file: …")
        _write(self._file, line)
        if time.monotonic() - self._synced > SYNC_SECONDS:
            os.fsync(self._file.fileno())
            self._synced = time.monotonic()

    def _lock(self, file: FileIO) -> None:
        try:
            # The kernel gives a lock back when its process dies, however it dies: none is ever left behind.
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise BpacError(f"{self.path} is being written by another process: wait for it, or stop it") from error

    def _begin(self, file: FileIO) -> None:
        head = {"bpac": self.kind, "format": FORMAT, "settings": self.settings}
        # As JSON would give them back: tuples become lists.
        settings = json.loads(json.dumps(self.settings))
        start = _first_line(file)
        # Also a beginning that was cut off: nothing else can stand in such a file.
        if not start.endswith(b"\n") and json.dumps(head, separators=(",", ":")).encode().startswith(start):
            file.truncate(0)
            _write(file, head)
            return
        differing = _differences(_settings(self.path, start, self.kind), settings)
        if differing:
            raise SettingsError(
                f"{self.path} was begun with other settings: {'; '.join(differing)}. "
                "Go on with the old ones, or begin another file"
            )
        _drop_torn_line(file)


def read_settings(path: Path, kind: str) -> dict[str, Any]:
    """What the lines of a file were made with."""
    with _opened(path) as file:
        return _settings(path, file.readline(), kind)


def read_lines(path: Path, kind: str) -> Iterator[dict[str, Any]]:
    """The lines of a file, in order; a last one that is torn, or still being written, is left out."""
    with _opened(path) as file:
        _settings(path, file.readline(), kind)
        torn = ""
        for number, data in enumerate(file, start=2):
            if torn:
                raise TableError(torn)
            line = _parsed(data)
            if line is None:
                torn = f"{path}: line {number} is damaged: {data[:40]!r}. Remove it, and what it held is asked again"
            else:
                yield line


def _opened(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as error:
        raise TableError(f"{path}: cannot be read ({error})") from error


def _settings(path: Path, first: bytes, kind: str) -> dict[str, Any]:
    head = _parsed(first) or {}
    if head.get("bpac") != kind or not isinstance(head.get("settings"), dict):
        raise TableError(f"{path} is not a file of {kind} that bpac wrote: its first line is {first[:60]!r}")
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


def _drop_torn_line(file: FileIO) -> None:
    end = file.seek(0, os.SEEK_END)
    tail, start = b"", end
    # Back to the line feed before the last line; the first line is whole, so there is one.
    while b"\n" not in tail[:-1] and start > 0:
        step = min(_BLOCK, start)
        start = file.seek(start - step)
        tail = file.read(step) + tail
    last = tail[tail.rfind(b"\n", 0, len(tail) - 1) + 1 :]
    # A line that is whole but unreadable is what a power cut leaves of one.
    if _parsed(last) is None:
        file.truncate(end - len(last))
