"""Callers who disconnect: the work on their request is cancelled."""

import asyncio
from typing import Any

from bpac.gateway.http.asgi import Receive

# Seconds after which a request is watched.
UNWATCHED = 1.0


class DisconnectWatch:
    """Cancels the work on a request when its caller disconnects.

    Parameters
    ----------
    receive: gives the message that the caller has disconnected.
    work: the task that is cancelled then; none to cancel nothing.
    """

    __slots__ = ("_receive", "_task", "_work", "left")

    def __init__(self, receive: Receive, work: "asyncio.Task[Any] | None") -> None:
        self.left = False
        self._receive = receive
        self._work = work
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Start to watch."""
        self._task = asyncio.create_task(self._look())

    async def _look(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        if self._work is not None:
            self.left = True
            self._work.cancel()

    def end(self) -> None:
        """Stop watching."""
        if self._task is not None:
            self._task.cancel()


class DisconnectWatches:
    """The watches of all requests.

    Each starts after a delay, and one timer serves all of them: most requests are answered before, and a task or a
    timer for every request costs more than it could save.
    """

    def __init__(self) -> None:
        # The watches that have not started, oldest first, and when each will start.
        self._waiting: dict[DisconnectWatch, float] = {}
        self._timer: asyncio.TimerHandle | None = None

    def new(self, receive: Receive, work: "asyncio.Task[Any] | None") -> DisconnectWatch:
        """A watch that starts after the delay."""
        watch, loop = DisconnectWatch(receive, work), asyncio.get_running_loop()
        self._waiting[watch] = loop.time() + UNWATCHED
        if self._timer is None:
            self._timer = loop.call_later(UNWATCHED, self._begin)
        return watch

    def end(self, watch: DisconnectWatch) -> None:
        """Stop watching this request."""
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
