"""A bar on standard error: how far, how fast in tokens, how long still, and what failed."""

import time
from types import TracebackType
from typing import Any, Self

from tqdm import tqdm


class Progress:
    """A progress bar, for as long as the ``with`` block lasts.

    Parameters
    ----------
    name: what is under way.
    total: how many items there are in all.
    kept: how many of them were done before, by a run that was stopped.
    unit: what an item is.
    """

    def __init__(self, name: str, total: int, kept: int = 0, unit: str = "answer") -> None:
        # Not on the first items alone: what is left is estimated over the last minute or so.
        self._bar: tqdm[Any] = tqdm(
            total=total,
            initial=kept,
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
        """Since the beginning."""
        return time.monotonic() - self._began

    def done(self, tokens: int = 0, failed: bool = False) -> None:
        """One item more."""
        self.tokens += tokens
        self.failed += failed
        words = [f"{self.tokens / max(self.seconds, 1e-9):,.0f} tokens/s"] if self.tokens else []
        words += [f"{self.failed} failed"] if self.failed else []
        self._bar.set_postfix_str(", ".join(words), refresh=False)
        self._bar.update()
