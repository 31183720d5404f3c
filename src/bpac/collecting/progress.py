"""A progress bar on standard error with tokens per second, the remaining time and the number of failures."""

import time
from types import TracebackType
from typing import Any, Self

from tqdm import tqdm


class Progress:
    """A progress bar that is shown inside the ``with`` block.

    Parameters
    ----------
    name: the name of the work.
    total: total number of items.
    completed: number of items that an earlier run completed (default: 0).
    unit: the name of an item (default: ``answer``).
    """

    def __init__(self, name: str, total: int, completed: int = 0, unit: str = "answer") -> None:
        # The smoothing estimates the remaining time from the last minute or so, not from the first items.
        self._bar: tqdm[Any] = tqdm(
            total=total,
            initial=completed,
            desc=name,
            unit=unit,
            leave=False,
            mininterval=0.5,
            smoothing=0.02,
            dynamic_ncols=True,
        )
        self._began = time.monotonic()
        self.tokens = 0
        self.failed = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.close()

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._began

    def done(self, tokens: int = 0, failed: bool = False) -> None:
        """Count one more item as completed."""
        self.tokens += tokens
        self.failed += failed
        words = [f"{self.tokens / max(self.seconds, 1e-9):,.0f} tokens/s"] if self.tokens else []
        words += [f"{self.failed} failed"] if self.failed else []
        self._bar.set_postfix_str(", ".join(words), refresh=False)
        self._bar.update()
