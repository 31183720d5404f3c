"""Log files, compressed or not: their records one after the other, whatever the file is called.

JSON lines and CSV are read line by line, JSON lists and documents element by element, and Parquet by groups of rows, so
that a file may be larger than the memory.
"""

import csv
import gzip
import io
import json
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from bpac.errors import TableError
from bpac.importing.call import Record
from bpac.replay.tables.row_files import csv_rows, parquet_rows

# Cells of logs hold whole conversations; the limit of the csv module is 131,072 characters.
LONGEST_CELL = 1 << 30
_GZIP = b"\x1f\x8b"
_PARQUET = b"PAR1"
_BLOCK = 1 << 16
_FEW_RECORDS = 256


@dataclass(frozen=True, slots=True)
class LogFile:
    """A log file.

    Parameters
    ----------
    path: the file.
    name: what it is called in messages.
    """

    path: Path
    name: str

    def records(self, progress: Callable[[int], object] = lambda position: None) -> Iterator[tuple[int, Record]]:
        """Every record with its row number, counted from 1; an error names the file and the row.

        Parameters
        ----------
        progress: called now and then with how many bytes of the file have been read.
        """
        try:
            with self.path.open("rb") as raw, _text(raw) as (start, file):
                rows = parquet_rows(self.path, self.name) if start == _PARQUET else self._values(file)
                for number, record in enumerate(rows, start=1):
                    if not isinstance(record, dict):
                        raise TableError(f"{self.name}: row {number} must be a JSON object, got {str(record)[:40]!r}")
                    if number % _FEW_RECORDS == 0:
                        progress(raw.tell())
                    yield number, record
                progress(raw.tell())
        except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
            raise TableError(f"{self.name}: cannot be read ({getattr(error, 'strerror', None) or error})") from error

    def _values(self, file: IO[str]) -> Iterator[Any]:
        start = file.read(_BLOCK).lstrip()[:1]
        file.seek(0)
        if start == "{":
            yield from self._objects(file)
        elif start == "[":
            yield from self._decoded(file, file.read(_BLOCK).lstrip()[1:], end="]")
        elif start:
            csv.field_size_limit(LONGEST_CELL)
            yield from csv_rows(self.name, file)

    def _objects(self, file: IO[str]) -> Iterator[Any]:
        """JSON lines; or documents of several lines each, one after the other."""
        line = next(line for line in file if line.strip())
        try:
            yield json.loads(line)
        except (ValueError, RecursionError) as error:
            if _goes_on(error, line):
                yield from self._decoded(file, line)
                return
            raise TableError(f"{self.name}: row 1 is not JSON ({error})") from error
        for number, text in enumerate(file, start=2):
            if not text.strip():
                continue
            try:
                yield json.loads(text)
            except (ValueError, RecursionError) as error:
                raise TableError(f"{self.name}: row {number} is not JSON ({error})") from error

    def _decoded(self, file: IO[str], text: str, end: str = "") -> Iterator[Any]:
        """JSON values one after the other, decoded as soon as enough of the file has been read.

        Parameters
        ----------
        file: the rest of the file.
        text: what has been read of it.
        end: what follows the last value (default: the end of the file).
        """
        decoder, at, number, block = json.JSONDecoder(), 0, 1, _BLOCK
        while True:
            at = _skipped(text, at)
            if end and text[at : at + 1] == end:
                return
            try:
                value, after = decoder.raw_decode(text, at)
                if end and after >= len(text):  # a number may go on, and nothing tells whether the list does
                    raise ValueError("the list has no end")
            except (ValueError, RecursionError) as error:
                # Twice as much each time: an element that is decoded in vain costs as much as reading it.
                more = file.read(block)
                if not more:
                    if not end and at >= len(text):
                        return
                    lost = "the list has no end" if at >= len(text) else error
                    raise TableError(f"{self.name}: row {number} is not JSON ({lost})") from error
                text, at, block = text[at:] + more, 0, 2 * block
                continue
            yield value
            at, number, block = after, number + 1, _BLOCK


@contextmanager
def _text(raw: IO[bytes]) -> Iterator[tuple[bytes, IO[str]]]:
    """The first bytes of a file, which say its format, and its text."""
    start = raw.read(len(_PARQUET))
    raw.seek(0)
    stream: Any = gzip.GzipFile(fileobj=raw) if start.startswith(_GZIP) else raw
    with io.TextIOWrapper(io.BufferedReader(stream, _BLOCK), encoding="utf-8-sig", newline="") as file:
        yield start, file


def _skipped(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n,":
        at += 1
    return at


def _goes_on(error: ValueError | RecursionError, line: str) -> bool:
    """Whether a line is the beginning of a document: it is JSON as far as it goes."""
    return isinstance(error, json.JSONDecodeError) and error.pos >= len(line.rstrip())
