"""Opening shared games while requests are answered: other requests do not wait for it, and nobody waits for long.

1. Games are opened one at a time. What has to be read from Redis first is read in a thread.
2. A request waits at most ``timeout`` for its game. Then, and at once while it is known that games cannot be opened, it
   goes on without one: the expert answers it, and it is no round.
3. The game that could not be opened is tried again until it is open. After that, other games are opened again, each
   with the next request of its segment.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any

from bpac.errors import StoreError
from bpac.gateway.shared.outages.outages import RedisOutages
from bpac.stores.redis.server.server_faults import REMEDY

if TYPE_CHECKING:
    from bpac.gateway.shared.shared_game import SharedGame

log = logging.getLogger("bpac.gateway")

# Seconds before the first repetition, and between two at most.
PAUSE, LONGEST_PAUSE = 0.05, 1.0

# Opens a game.
Open = Callable[[], Awaitable["SharedGame"]]


class GameOpening:
    """Opens the games of a gateway.

    Parameters
    ----------
    timeout: seconds that a request waits at most.
    outages: records since when games cannot be opened.

    Attributes
    ----------
    failure: why games cannot be opened at present; none as long as they can.
    """

    def __init__(self, timeout: float, outages: RedisOutages) -> None:
        self._timeout = timeout
        self._outages = outages
        self.failure: StoreError | None = None
        self._one_at_a_time = asyncio.Lock()
        self._tasks: set[asyncio.Task[Any]] = set()

    async def opened(self, open_game: Open, **names: str) -> "SharedGame | None":
        """The game, when it is open; none if it cannot be opened at present.

        Parameters
        ----------
        open_game: opens it; it may be called again.
        names: of its route and segment, for the log.
        """
        if self.failure is not None:
            return None
        task = self._spawn(self._open(open_game, names))
        # The task goes on if this request ends, or waits no longer: the game is needed by the next one.
        await asyncio.wait({task}, timeout=self._timeout)
        if task.done():
            game: SharedGame | None = task.result()
            return game
        waited = f"Redis did not answer within {self._timeout:g} seconds"
        self._fails(StoreError(waited, cause=waited, remedy=REMEDY), names)
        return None

    def stop(self) -> None:
        """Open nothing more."""
        for task in self._tasks:
            task.cancel()

    async def _open(self, open_game: Open, names: dict[str, str]) -> "SharedGame | None":
        async with self._one_at_a_time:
            if self.failure is not None:  # found while this one waited for its turn
                return None
            try:
                game = await open_game()
            except Exception as error:
                self._fails(store_error(error), names)
                self._spawn(self._open_again(open_game, names))
                return None
            self._works(names)
            return game

    async def _open_again(self, open_game: Open, names: dict[str, str]) -> None:
        pause = PAUSE
        while True:
            await asyncio.sleep(pause)
            pause = min(2.0 * pause, LONGEST_PAUSE)
            try:
                await open_game()
            except Exception as error:
                self.failure = store_error(error)
            else:
                self._works(names)
                return

    def _fails(self, error: StoreError, names: dict[str, str]) -> None:
        if self.failure is None:
            known = {**names, "error": str(error), "remedy": error.remedy}
            log.error("a game cannot be opened: the expert answers requests of new segments", extra=known)
        self.failure = error
        self._outages.begin(self, error)

    def _works(self, names: dict[str, str]) -> None:
        if self.failure is not None:
            self.failure = None
            log.warning("games can be opened again", extra=names)
            self._outages.end(self)

    def _spawn(self, work: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def store_error(error: Exception) -> StoreError:
    """The error as one of the store, so that the expert answers; what is none is logged."""
    if isinstance(error, StoreError):
        return error
    log.error("a game could not be opened", exc_info=error)
    return StoreError(f"a game could not be opened ({type(error).__name__})", cause="the cause is in the gateway's log")
