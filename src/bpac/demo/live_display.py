"""Progress on standard error: a few lines that are redrawn on a terminal, or one line every few seconds elsewhere."""

import os
import sys
import time
from collections.abc import Sequence
from typing import TextIO


class LiveDisplay:
    """Lines that are shown again and again.

    Nothing is shown if the environment variable ``TQDM_DISABLE`` is set, like all progress bars of this package.

    Parameters
    ----------
    stream: where to write (default: standard error).
    pause: seconds between two lines where lines cannot be redrawn.
    """

    def __init__(self, stream: TextIO | None = None, pause: float = 5.0) -> None:
        self._stream = stream if stream is not None else sys.stderr
        self._silent = bool(os.environ.get("TQDM_DISABLE"))
        self._redraws = self._stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"
        self._pause = pause
        self._height = 0
        self._last = -float("inf")

    def show(self, lines: Sequence[str], line: str) -> None:
        """Replace the lines on the terminal; where that is not possible, write the one line every few seconds."""
        if self._silent:
            return
        if self._redraws:
            width = os.get_terminal_size(self._stream.fileno()).columns or 80  # some terminals report 0
            # A line wider than the terminal would take two lines, and the next redraw would clear one too few.
            drawn = "".join(f"\x1b[2K{line[: max(1, width - 1)]}\n" for line in lines)
            self._stream.write(f"{self._back()}{drawn}\x1b[J")
            self._height = len(lines)
        elif time.monotonic() >= self._last + self._pause:
            self._last = time.monotonic()
            self._stream.write(f"{line}\n")
        self._stream.flush()

    def clear(self) -> None:
        """Remove the lines that are redrawn."""
        if self._height:
            self._stream.write(f"{self._back()}\x1b[J")
            self._stream.flush()
            self._height = 0

    def print(self, line: str) -> None:
        """Write a line that stays, above those that are redrawn."""
        self._height = 0
        self._stream.write(f"{line}\n")
        self._stream.flush()

    def _back(self) -> str:
        """Moves to the start of the first line; also after Ctrl-C, which leaves ``^C`` on the last line."""
        return f"\r\x1b[{self._height}A" if self._height else "\r"
