"""The lock of a router.

1. Every call that changes a router, or reads more than one number of it, holds its lock: calls from several threads
   happen one after the other, and none is lost.
2. The journal callback is called with the lock held, so that the journal has the order in which entries took effect.
3. The lock may be taken again by the thread that holds it: a journal callback may read the router that it writes for.
4. A call that changes the router marks it as busy until the change is complete. A callback that calls for another
   change in the middle of one is refused, because the journal would get entries in the wrong order.
5. A change that was interrupted (Ctrl-C, a time limit raised as an exception) leaves the router busy: whether the entry
   is in the journal is not known, so nothing more may be decided. Ordinary errors before the entry is written change
   nothing, and the router goes on.
"""

from threading import RLock
from types import TracebackType
from typing import NoReturn

from bpac.errors import Interrupted


class RouterLock:
    """A lock that also knows whether a change is under way.

    >>> lock = RouterLock()
    >>> with lock:
    ...     lock.busy
    False
    """

    __slots__ = ("acquire", "busy", "release")

    def __init__(self) -> None:
        lock = RLock()
        self.acquire = lock.acquire
        self.release = lock.release
        self.busy = False

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def __reduce__(self) -> "tuple[type[RouterLock], tuple[()]]":
        # A copy of a router has a lock of its own.
        return RouterLock, ()

    def start(self) -> None:
        """Take the lock for a change; ``Interrupted`` if another one is not complete."""
        self.acquire()
        if self.busy:
            self.refuse()
        self.busy = True

    def refuse(self) -> NoReturn:
        """Release the lock, because another change is not complete, and raise ``Interrupted``."""
        self.release()
        raise Interrupted(
            "this router is in the middle of a change: an earlier call was interrupted (rebuild the router from its "
            "journal, or open its file again), or its journal callback calls it"
        )

    def change(self) -> "Change":
        """A block that changes the router, and leaves it as it was if it raises an ordinary error."""
        return Change(self)


class Change:
    """A block of code that holds the lock for a change."""

    __slots__ = ("_lock",)

    def __init__(self, lock: RouterLock) -> None:
        self._lock = lock

    def __enter__(self) -> None:
        self._lock.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None or issubclass(kind, Exception):
            self._lock.busy = False
        self._lock.release()
