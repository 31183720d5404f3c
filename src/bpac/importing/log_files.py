"""Log files, compressed or not: their records one after the other, whatever the file is called.

JSON lines and CSV are read line by line and a JSON list element by element, so that a file may be larger than the
memory. Any other JSON document is read whole.
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
from bpac.replay.tables.row_files import csv_rows

# Cells of logs hold whole conversations; the limit of the csv module is 131,072 characters.
LONGEST_CELL = 1 << 30
_GZIP = b"\x1f\x8b"
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
            with self.path.open("rb") as raw, _text(raw) as file:
                for number, record in enumerate(self._values(file), start=1):
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
            yield from self._elements(file)
        elif start:
            csv.field_size_limit(LONGEST_CELL)
            yield from csv_rows(self.name, file)

    def _objects(self, file: IO[str]) -> Iterator[Any]:
        """JSON lines, or one document of several lines."""
        line = next((line for line in file if line.strip()), "")
        try:
            first = json.loads(line)
        except (ValueError, RecursionError) as error:
            rest = file.read()
            try:
                yield json.loads(line + rest)
            except (ValueError, RecursionError) as whole:
                # What went further was meant: a document, or the first of many lines.
                lost = whole if "\n" in line and not rest.lstrip().startswith("{") else error
                raise TableError(f"{self.name}: row 1 is not JSON ({lost})") from whole
            return
        yield first
        for number, text in enumerate(file, start=2):
            if not text.strip():
                continue
            try:
                yield json.loads(text)
            except (ValueError, RecursionError) as error:
                raise TableError(f"{self.name}: row {number} is not JSON ({error})") from error

    def _elements(self, file: IO[str]) -> Iterator[Any]:
        """The elements of a JSON list, decoded as soon as enough of the file has been read."""
        decoder, text, number, block = json.JSONDecoder(), file.read(_BLOCK), 1, _BLOCK
        at = text.index("[") + 1
        while True:
            at = _skipped(text, at)
            if text[at : at + 1] == "]":
                return
            try:
                if at >= len(text):
                    raise ValueError("the list has no end")
                value, end = decoder.raw_decode(text, at)
                if end >= len(text):  # a number may go on, and nothing tells whether the list does
                    raise ValueError("the list has no end")
            except (ValueError, RecursionError) as error:
                # Twice as much each time: an element that is decoded in vain costs as much as reading it.
                more = file.read(block)
                if not more:
                    raise TableError(f"{self.name}: row {number} is not JSON ({error})") from error
                text, at, block = text[at:] + more, 0, 2 * block
                continue
            yield value
            at, number, block = end, number + 1, _BLOCK


@contextmanager
def _text(raw: IO[bytes]) -> Iterator[IO[str]]:
    start = raw.read(2)
    raw.seek(0)
    stream: Any = gzip.GzipFile(fileobj=raw) if start == _GZIP else raw
    with io.TextIOWrapper(io.BufferedReader(stream, _BLOCK), encoding="utf-8-sig", newline="") as file:
        yield file


def _skipped(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n,":
        at += 1
    return at
