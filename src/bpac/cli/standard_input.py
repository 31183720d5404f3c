"""Standard input as a file that can be read more than once."""

import gzip
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# What stands for standard input among file names.
STANDARD_INPUT = "-"
_GZIP = b"\x1f\x8b"
_FEW = 4096


@contextmanager
def spooled(suffix: str = "") -> Iterator[Path]:
    """A temporary file with everything that standard input has.

    Parameters
    ----------
    suffix: the end of its name (default: none).
    """
    with tempfile.TemporaryDirectory(prefix="bpac-") as folder:
        path = Path(folder, f"standard-input{suffix}")
        with path.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        yield path


@contextmanager
def spooled_table() -> Iterator[Path]:
    """A temporary file with the table that standard input has; its name says the format, which the content tells."""
    with spooled() as path:
        with path.open("rb") as file:
            start = file.read(_FEW)
        ending = ""
        if start.startswith(_GZIP):
            ending = ".gz"
            with gzip.open(path, "rb") as unpacked:
                start = unpacked.read(_FEW)
        kind = ".parquet" if start.startswith(b"PAR1") else ".jsonl" if start.lstrip()[:1] == b"{" else ".csv"
        yield path.rename(path.with_name(f"{path.name}{kind}{ending}"))
