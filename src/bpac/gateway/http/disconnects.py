"""Callers who leave: the work for them ends."""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]

# Seconds before anybody looks whether a caller is still there.
UNWATCHED = 1.0


class DisconnectWatch:
    """Cancels the work when the caller leaves.

    Parameters
    ----------
    receive: says when that happens.
    work: for the caller.
    """

    __slots__ = ("_receive", "_task", "_work", "left")

    def __init__(self, receive: Receive, work: "asyncio.Task[Any] | None") -> None:
        self.left = False
        self._receive = receive
        self._work = work
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Look from now on."""
        self._task = asyncio.create_task(self._look())

    async def _look(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        if self._work is not None:
            self.left = True
            self._work.cancel()

    def end(self) -> None:
        """Look no longer."""
        if self._task is not None:
            self._task.cancel()


class DisconnectWatches:
    """The watches of all requests.

    Each begins after a moment: a task, or only a timer, for every request costs more than it could save within that
    time. So there is one timer for all of them.
    """

    def __init__(self) -> None:
        # When to begin with those that have not begun, oldest first.
        self._waiting: dict[DisconnectWatch, float] = {}
        self._timer: asyncio.TimerHandle | None = None

    def new(self, receive: Receive, work: "asyncio.Task[Any] | None") -> DisconnectWatch:
        """A watch that begins in a moment."""
        watch, loop = DisconnectWatch(receive, work), asyncio.get_running_loop()
        self._waiting[watch] = loop.time() + UNWATCHED
        if self._timer is None:
            self._timer = loop.call_later(UNWATCHED, self._begin)
        return watch

    def end(self, watch: DisconnectWatch) -> None:
        """Look no longer after this one."""
        self._waiting.pop(watch, None)
        watch.end()

    def _begin(self) -> None:
        self._timer, loop = None, asyncio.get_running_loop()
        for watch, due in list(self._waiting.items()):
            if due > loop.time():
                self._timer = loop.call_at(due, self._begin)
                break
            del self._waiting[watch]
            watch.begin()
