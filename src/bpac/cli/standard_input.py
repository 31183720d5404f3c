"""Standard input as a file that can be read more than once."""

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# What stands for standard input among file names.
STANDARD_INPUT = "-"


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
