"""What the processes of a gateway have in common: what they inherit, signs of life, and the end of the supervisor."""

import asyncio
import gc
import logging
import os
import socket
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bpac.errors import MissingExtra
from bpac.gateway.server import GC_THRESHOLDS
from bpac.gateway.workers.board import Board

try:
    import uvicorn
except ImportError as error:
    raise MissingExtra("uvicorn", "gateway") from error

log = logging.getLogger("bpac.gateway")

BEAT_EVERY = 0.25


@dataclass(frozen=True, slots=True)
class Inherited:
    """What a process gets from the supervisor.

    Parameters
    ----------
    config: the path of the configuration.
    directory: where the Unix sockets are.
    fronts: the number of fronts.
    index: which front this is; ``fronts`` for the owner.
    board: the descriptor of the shared memory.
    life: the descriptor of a pipe that ends with the supervisor.
    sockets: descriptors of listening sockets: those of the gateway for a front; for fronts and for pages in the owner.
    restarts: how often an owner was lost before this one.
    ends: when owners were lost the latest times, in seconds since 1970.
    """

    config: str
    directory: str
    fronts: int
    index: int
    board: int
    life: int
    sockets: tuple[int, ...]
    restarts: int = 0
    ends: Sequence[float] = ()

    @property
    def desk(self) -> str:
        """The Unix socket on which the owner decides."""
        return str(Path(self.directory) / "desk.sock")

    @property
    def pages(self) -> str:
        """The Unix socket on which the owner answers HTTP."""
        return str(Path(self.directory) / "pages.sock")


def listening(descriptor: int) -> socket.socket:
    """An inherited socket."""
    found = socket.socket(fileno=descriptor)
    found.setblocking(False)
    return found


async def _beating(board: Board, slot: int, connections: Callable[[], int]) -> None:
    """Say again and again that this process is alive."""
    beat = board.beat(slot)
    while True:
        beat += 1
        board.write(slot, beat=beat, connections=connections())
        await asyncio.sleep(BEAT_EVERY)


async def _serve(
    server: uvicorn.Server,
    run: Coroutine[Any, Any, None],
    inherited: Inherited,
    board: Board,
    connections: Callable[[], int],
) -> None:
    """Serve until a signal, or the end of the supervisor, stops this process."""
    loop = asyncio.get_running_loop()

    def alone() -> None:
        loop.remove_reader(inherited.life)
        log.error("the supervisor has ended: this process stops, too", extra={"pid": os.getpid()})
        server.should_exit = True

    main = asyncio.current_task()

    async def beat() -> None:
        while not server.started:
            if server.should_exit and main is not None:
                main.cancel()  # it waits for the owner, which may never come
            await asyncio.sleep(0.02)
        await _beating(board, inherited.index, connections)

    loop.add_reader(inherited.life, alone)
    beats = asyncio.create_task(beat())
    try:
        await run
    finally:
        beats.cancel()
        await asyncio.gather(beats, return_exceptions=True)


def run_server(
    server: uvicorn.Server,
    run: Callable[[], Coroutine[Any, Any, None]],
    inherited: Inherited,
    board: Board,
    connections: Callable[[], int] = lambda: 0,
) -> bool:
    """Run the server of a process until it stops; true if it started and stopped without an error.

    Parameters
    ----------
    server: the server.
    run: serves, in the event loop.
    inherited: what the process has got from the supervisor.
    board: the memory that all processes share.
    connections: how many connections of callers it has (default: none).
    """
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    try:
        with asyncio.Runner(loop_factory=server.config.get_loop_factory()) as runner:
            runner.run(_serve(server, run(), inherited, board, connections))
    except (SystemExit, asyncio.CancelledError):
        return False
    return server.started and not server.force_exit and not server.lifespan.should_exit
