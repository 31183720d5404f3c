"""Accepting connections on a socket that several processes listen on, so that each gets its share.

1. All fronts wait for the same socket. Left to themselves, the one that wakes up first takes all connections that have
   come at once, and keeps them for as long as their callers do.
2. So a front takes one connection at a time. While it has more than another front that is alive, it leaves the next one
   to the others for a moment, and takes it only if nobody else has.
3. If this process may open no more files, it leaves connections to the others for a while.
"""

import asyncio
import logging
import socket
from collections.abc import Callable, Sized

from bpac.gateway.telemetry.log_rate import LogRate
from bpac.gateway.workers.board import Board

log = logging.getLogger("bpac.gateway")

# Seconds for which a connection is left to another process, for each connection that it has less; at most so many.
MOMENT, MOST_MOMENTS = 0.002, 10
# Seconds for which none is accepted if none can be.
WHILE = 0.1
# Seconds after which a process whose beat stands still counts as gone.
STALE = 1.0


class Acceptor:
    """Accepts the connections of one front.

    Parameters
    ----------
    listening: the shared socket.
    protocol: makes the protocol of a connection.
    board: what all fronts say about themselves.
    slot: the slot of this front.
    open_connections: the connections of this front.
    """

    def __init__(
        self,
        listening: socket.socket,
        protocol: Callable[[], asyncio.Protocol],
        board: Board,
        slot: int,
        open_connections: Sized,
    ) -> None:
        self._listening = listening
        self._protocol = protocol
        self._board = board
        self._slot = slot
        self._open = open_connections
        self._loop = asyncio.get_running_loop()
        self._beats: dict[int, tuple[int, float]] = {}
        self._yielded = False
        self._closed = False
        self._rate = LogRate()
        self._tasks: set[asyncio.Task[object]] = set()
        # Accepted, and not counted yet by the protocol.
        self._opening = 0
        listening.setblocking(False)
        self._listen()

    async def close(self) -> None:
        """Accept no more; what was accepted is a connection when this returns."""
        self._closed = True
        self._loop.remove_reader(self._listening.fileno())
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _listen(self) -> None:
        if not self._closed:
            self._loop.add_reader(self._listening.fileno(), self._on_connection)

    def _pause(self, seconds: float) -> None:
        self._loop.remove_reader(self._listening.fileno())
        self._loop.call_later(seconds, self._listen)

    def _on_connection(self) -> None:
        if not self._yielded and (more := self._more_than_others()):
            self._yielded = True
            self._pause(MOMENT * min(more, MOST_MOMENTS))
            return
        self._yielded = False
        try:
            accepted, _ = self._listening.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return  # another front took it
        except OSError as error:
            if times := self._rate.count("accept"):
                log.error(
                    "no connection can be accepted: raise the number of files that a process may open (ulimit -n)",
                    extra={"error": str(error), "since_last_line": times},
                )
            self._pause(WHILE)
            return
        accepted.setblocking(False)
        self._opening += 1
        task: asyncio.Task[object] = self._loop.create_task(self._connected(accepted))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _connected(self, accepted: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(self._protocol, accepted)
        except OSError:
            accepted.close()  # its caller has left
        finally:
            self._opening -= 1
            self._board.write(
                self._slot, beat=self._board.beat(self._slot), connections=len(self._open) + self._opening
            )

    def _more_than_others(self) -> int:
        """How many connections this front has more than another one that is alive; 0 if it has not."""
        most, own, now = 0, len(self._open) + self._opening, self._loop.time()
        for slot in range(self._board.slots - 1):
            if slot == self._slot:
                continue
            beat = self._board.beat(slot)
            known, since = self._beats.get(slot, (-1, now))
            if beat != known:
                self._beats[slot] = (beat, now)
            elif now - since > STALE:
                continue
            if beat:
                most = max(most, own - self._board.connections(slot))
        return most
