"""The file formats of tables."""

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Literal

from bpac.errors import TableError

Format = Literal["csv", "jsonl", "parquet"]
EXTENSIONS = "the name of a table file ends in .csv, .jsonl (each also .gz) or .parquet"


def table_format(path: Path) -> Format:
    """The format that a file name stands for; ``TableError`` if it is not that of a table."""
    name = path.name.removesuffix(".gz")
    if name.endswith(".csv"):
        return "csv"
    if name.endswith(".jsonl"):
        return "jsonl"
    if path.name.endswith(".parquet"):
        return "parquet"
    raise TableError(f"{path}: {EXTENSIONS}")


@contextmanager
def open_text(path: Path, mode: Literal["rt", "wt"] = "rt") -> Iterator[IO[str]]:
    """Open a text file, which is compressed if its name ends in ``.gz``."""
    opener = gzip.open if path.name.endswith(".gz") else open
    # Spreadsheets write a byte order mark: it is skipped when reading, and not written.
    with opener(path, mode, encoding="utf-8-sig" if mode == "rt" else "utf-8", newline="") as file:
        yield file
