"""Work that must end: symbolic algebra may think for hours about one expression."""

import ctypes
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class TookTooLong(BaseException):
    """The work was not done in time.

    It is no ``Exception``, so that a library's ``except Exception`` cannot mistake it for a failed attempt.
    """


def within(seconds: float, work: Callable[[], T]) -> T:
    """Do the work, or raise ``TookTooLong`` when the time is over; in any thread, unlike an alarm signal.

    It interrupts Python code only: a single operation on a gigantic number cannot be stopped.

    Parameters
    ----------
    seconds: how long the work may take.
    work: what to do.

    >>> within(5.0, lambda: 6 * 7)
    42
    """
    worker = ctypes.c_ulong(threading.get_ident())
    raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc
    over = raised = late = False
    # Plain locks only: the exception may arrive in the middle of any Python code, that of ``threading.Event`` included,
    # and re-entrant, so that a worker who is interrupted while it holds its turn can take it again.
    turn, working = threading.RLock(), threading.Lock()
    working.acquire()

    def watch() -> None:
        nonlocal raised
        wait = seconds
        while not working.acquire(timeout=wait):
            # Again and again: an exception that happens to arrive inside a destructor is lost.
            wait = 0.25
            with turn:
                if not over:
                    raised = True
                    raise_in(worker, ctypes.py_object(TookTooLong))

    try:
        threading.Thread(target=watch, daemon=True).start()
        return work()
    finally:
        while True:
            try:
                with turn:
                    over = True
                # Whatever was raised and is still on its way has to arrive here, not in the caller's code. Taking it
                # back would be shorter, but leaves CPython looking for it at every instruction from then on.
                for _ in range(100 if raised else 0):
                    pass
                break
            except TookTooLong:
                late = True
        working.release()
        if late:
            raise TookTooLong
