"""Signals that ask a program to end are turned into KeyboardInterrupt, so that it stops everything it started."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def signals_as_keyboard_interrupt() -> Iterator[None]:
    """Raise ``KeyboardInterrupt`` at SIGINT, SIGTERM and SIGHUP inside the ``with`` block.

    SIGINT too, because shells start background programs with SIGINT ignored.
    """

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        # Raised again as SIGINT, whose handler asyncio replaces with its own while it runs.
        signal.raise_signal(signal.SIGINT)

    handlers = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: interrupt, signal.SIGHUP: interrupt}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
