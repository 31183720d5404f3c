"""A few lines on standard error that show where the demo is: redrawn in place on a terminal, now and then elsewhere."""

import os
import sys
import time
from collections.abc import Sequence
from typing import TextIO


class Live:
    """Lines that are shown again and again.

    With ``TQDM_DISABLE`` in the environment nothing is shown, as by every bar of this project.

    Parameters
    ----------
    stream: where to; standard error if not given.
    pause: seconds between two lines where they cannot be redrawn.
    """

    def __init__(self, stream: TextIO | None = None, pause: float = 5.0) -> None:
        self._stream = stream if stream is not None else sys.stderr
        self._silent = bool(os.environ.get("TQDM_DISABLE"))
        self._redraws = self._stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"
        self._pause = pause
        self._height = 0
        self._last = -float("inf")

    def show(self, lines: Sequence[str], line: str) -> None:
        """Show the lines in the place of those before, or where that cannot be done the one line, now and then."""
        if self._silent:
            return
        if self._redraws:
            width = os.get_terminal_size(self._stream.fileno()).columns or 80  # some terminals do not know theirs
            # A line that is wider than the terminal would take two, and the next time one too few would be cleared.
            drawn = "".join(f"\x1b[2K{line[: max(1, width - 1)]}\n" for line in lines)
            self._stream.write(f"{self._back()}{drawn}\x1b[J")
            self._height = len(lines)
        elif time.monotonic() >= self._last + self._pause:
            self._last = time.monotonic()
            self._stream.write(f"{line}\n")
        self._stream.flush()

    def clear(self) -> None:
        """Take away what is redrawn."""
        if self._height:
            self._stream.write(f"{self._back()}\x1b[J")
            self._stream.flush()
            self._height = 0

    def say(self, line: str) -> None:
        """A line that stays, above those that are redrawn."""
        self._height = 0
        self._stream.write(f"{line}\n")
        self._stream.flush()

    def _back(self) -> str:
        """Moves to the beginning of the first line; a Ctrl-C on the terminal has left its mark on the last."""
        return f"\r\x1b[{self._height}A" if self._height else "\r"
