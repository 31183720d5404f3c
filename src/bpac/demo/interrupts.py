"""Whatever asks a program to end is heard as Ctrl-C, so that everything it started is ended too."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def heard_as_ctrl_c() -> Iterator[None]:
    """Raise ``KeyboardInterrupt`` at SIGINT, SIGTERM and SIGHUP while the ``with`` block lasts.

    Shells start programs in the background with SIGINT ignored: it is heard here all the same.
    """

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        # Whoever listens to SIGINT at that time: asyncio does, while it runs.
        signal.raise_signal(signal.SIGINT)

    handlers = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: interrupt, signal.SIGHUP: interrupt}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
