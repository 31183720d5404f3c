"""The supervisor of a gateway with several processes: it starts them, starts them again, and passes signals on.

1. It holds the listening sockets, and the Unix sockets of the owner. So callers and fronts wait, and are not refused,
   while a process is started again.
2. It starts one owner of the journals and N fronts. A process that ends is started again at once; one that ends again
   and again, with longer and longer pauses. A process that gives no sign of life for ``HUNG`` seconds is killed.
3. SIGTERM stops the fronts first, which finish their requests, and then the owner. SIGHUP has the owner reload, which
   passes the configuration on to the fronts. SIGUSR2 stops everything, and replaces the supervisor by a new process
   with the same command, process id and listening sockets.
4. If the supervisor itself is killed, the other processes notice, finish their requests and stop.
"""

import asyncio
import json
import logging
import os
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bpac.errors import BpacError, SettingsError
from bpac.gateway.config.file import Config
from bpac.gateway.handover import check_restart, inherited_sockets, restart_in_place
from bpac.gateway.server import allow_open_files, ignore_signals
from bpac.gateway.workers.board import Board
from bpac.gateway.workers.child import FIRST_PAUSE, Child, send_signal
from bpac.gateway.workers.ends import ProcessEnds
from bpac.gateway.workers.listening import listen, listen_unix

log = logging.getLogger("bpac.gateway")

MOST_FRONTS = 256
# Seconds without a sign of life after which a process is killed; between two looks.
HUNG, LOOK_EVERY = 30.0, 1.0
# Seconds after its start within which a process has ended soon; most seconds before it is started again.
SOON, LONGEST_PAUSE = 5.0, 5.0
# Seconds for processes that stop, beyond the time for requests in progress.
MARGIN = 15.0
OWNER = "owner"


@dataclass
class Supervisor:
    """Keeps the processes of one gateway running.

    Parameters
    ----------
    path: the configuration file.
    config: what is in it.
    load: reads it again.
    fronts: the number of fronts.
    sockets: the listening sockets.
    log_level: of all processes.
    """

    path: Path
    config: Config
    load: Callable[[], Config]
    fronts: int
    sockets: list[socket.socket]
    log_level: str
    restart: bool = False
    failed: bool = False
    _directory: str = ""
    _children: list[Child] = field(default_factory=list)
    _stopping: asyncio.Event = field(default_factory=asyncio.Event)
    _hurry: bool = False
    _owner_ends: ProcessEnds = field(default_factory=ProcessEnds)
    _tasks: set["asyncio.Task[None]"] = field(default_factory=set)

    async def run(self) -> None:
        """Start all processes, and keep them running until a signal comes."""
        loop = asyncio.get_running_loop()
        self._directory = tempfile.mkdtemp(prefix="bpac-")
        self._desk, self._pages = (listen_unix(Path(self._directory) / name) for name in ("desk.sock", "pages.sock"))
        self._board = Board(slots=self.fronts + 1)
        self._life, self._alive = os.pipe()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._on_stop)
        loop.add_signal_handler(signal.SIGHUP, lambda: self._later(self._on_hangup()))
        loop.add_signal_handler(signal.SIGUSR2, lambda: self._later(self._on_restart()))
        self._children = [Child(OWNER, self.fronts), *(Child(f"front {n}", n) for n in range(self.fronts))]
        owner, *fronts = [loop.create_task(self._keep(child)) for child in self._children]
        watching = loop.create_task(self._watch())
        for task in (owner, *fronts, watching):
            task.add_done_callback(self._check)
        try:
            await self._stopping.wait()
            await self._ended(fronts, self._children[1:])
            await self._ended([owner], self._children[:1])
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
            ignore_signals()
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR2):
                loop.remove_signal_handler(number)
            ignore_signals()
            self._desk.close()
            self._pages.close()
            shutil.rmtree(self._directory, ignore_errors=True)

    def _check(self, task: "asyncio.Task[None]") -> None:
        """Stop if the supervisor itself has a fault: processes that nobody keeps running must not stay."""
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("the supervisor failed: the gateway stops", exc_info=error)
            self.failed = True
            self._stopping.set()

    def _on_stop(self) -> None:
        self.restart = False
        self._hurry = self._stopping.is_set()
        self._stopping.set()

    def _later(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(self._check)

    async def _on_hangup(self) -> None:
        """Have the owner reload, as soon as it runs."""
        owner = self._children[0]
        while not self._stopping.is_set() and self._board.beat(owner.slot) == owner.first_beat:
            await asyncio.sleep(LOOK_EVERY / 10)
        send_signal(owner, signal.SIGHUP)

    async def _on_restart(self) -> None:
        """Stop and keep the listening sockets, unless a new process could not start with the configuration."""
        if self._stopping.is_set() or self.restart:
            return
        try:
            config = await asyncio.to_thread(self.load)
            await asyncio.to_thread(check_restart, self.config, config)
            command = self._command("check", str(self.path))
            checked = await asyncio.create_subprocess_exec(*command, stdin=asyncio.subprocess.DEVNULL)
            if await checked.wait():
                raise SettingsError("the packages that its graders need cannot be used")
        except BpacError as error:
            log.error("no restart: the configuration cannot be used", extra={"error": str(error)})
            return
        except OSError as error:
            log.error("no restart: it could not be prepared", extra={"error": str(error)})
            return
        if not self._stopping.is_set():
            log.info("restarting: connections wait until the new process has started")
            self.restart = True
            self._stopping.set()

    def _command(self, role: str, values: str) -> list[str]:
        return [sys.executable, "-m", "bpac.gateway.workers", role, values, self.log_level]

    async def _keep(self, child: Child) -> None:
        """Start a process, and start it again whenever it ends, until the gateway stops."""
        while not self._stopping.is_set():
            started = time.monotonic()
            child.first_beat = child.beat = self._board.beat(child.slot)
            child.alive, child.since = False, started
            self._board.write(child.slot, beat=child.beat, connections=0)
            try:
                await self._start(child)
            except OSError as error:
                log.error(f"{child.name} cannot be started: {error}")
                code = 1
            else:
                assert child.process is not None
                code = await child.process.wait()
            child.process = None
            self._board.write(child.slot, beat=self._board.beat(child.slot), connections=0)
            if self._stopping.is_set():
                if child.name == OWNER and code:
                    self.failed = True
                return
            if not self._ever_ran(child) and code > 0:
                # It gave up by itself before it ran, and would do so again. One that was killed is started again.
                log.error(f"{child.name} could not start: the gateway stops", extra={"code": code})
                self.failed = True
                self._stopping.set()
                return
            if child.name == OWNER:
                self._owner_ends.add()
            lived = time.monotonic() - started
            child.pause = FIRST_PAUSE if lived > SOON else min(2.0 * child.pause, LONGEST_PAUSE)
            log.error(
                f"{child.name} ended and is started again",
                extra={"worker": child.name, "code": code, "seconds": round(lived, 3), "times": child.starts},
            )
            if lived < SOON:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._stopping.wait(), child.pause)

    def _ever_ran(self, child: Child) -> bool:
        return child.starts > 1 or self._board.beat(child.slot) > 0

    async def _start(self, child: Child) -> None:
        child.starts += 1
        mine = [self._desk, self._pages] if child.name == OWNER else self.sockets
        descriptors = [each.fileno() for each in mine]
        values = json.dumps(
            {
                "config": str(self.path), "directory": self._directory, "fronts": self.fronts, "index": child.slot,
                "board": self._board.descriptor, "life": self._life, "sockets": descriptors,
                "restarts": self._owner_ends.count, "ends": self._owner_ends.times,
            }
        )  # fmt: skip
        role = OWNER if child.name == OWNER else "front"
        child.process = await asyncio.create_subprocess_exec(
            *self._command(role, values),
            stdin=asyncio.subprocess.DEVNULL,
            pass_fds=(*descriptors, self._board.descriptor, self._life),
            # A terminal sends its signals to all processes of a group; here they come in order.
            start_new_session=True,
        )

    async def _watch(self) -> None:
        """Kill processes that give no sign of life."""
        while True:
            await asyncio.sleep(LOOK_EVERY)
            now = time.monotonic()
            for child in self._children:
                beat = self._board.beat(child.slot)
                if beat != child.beat:
                    child.beat, child.since, child.alive = beat, now, True
                elif child.process is not None and child.alive and now - child.since > HUNG:
                    log.error(f"{child.name} gives no sign of life and is killed", extra={"worker": child.name})
                    child.since = now
                    send_signal(child, signal.SIGKILL)

    async def _ended(self, tasks: "list[asyncio.Task[None]]", children: list[Child]) -> None:
        """Wait until processes have stopped; kill those that take too long."""
        until = time.monotonic() + await asyncio.to_thread(self._drain) + MARGIN
        while not all(task.done() for task in tasks):
            late = time.monotonic() > until or self._hurry
            for child in children:
                if late:
                    send_signal(child, signal.SIGKILL)
                elif child.process is not None and child.stopped != child.process.pid:
                    # Once each, also one that was just being started: a second signal could meet a process that has
                    # stopped, and has no handler any more.
                    child.stopped = child.process.pid
                    send_signal(child, signal.SIGTERM)
            await asyncio.wait(tasks, timeout=0.2)

    def _drain(self) -> float:
        """Seconds that requests in progress may take; a reload may have changed them."""
        with suppress(BpacError):
            return max(self.config.drain, self.load().drain)
        return self.config.drain


def supervise(path: Path, load: Callable[[], Config], fronts: int, log_level: str) -> bool:
    """Serve with several processes until a signal stops them; true if they started and stopped without an error.

    Parameters
    ----------
    path: the configuration file.
    load: reads it.
    fronts: the number of processes that answer requests, beside the one that owns the journals.
    log_level: of all processes.
    """
    config = load()
    if config.store.startswith("redis"):
        raise SettingsError(
            "--workers is for a store on this machine, one of whose processes owns the journal: with store = "
            '"redis://…" start several gateways without --workers instead'
        )
    if not 1 <= fronts <= MOST_FRONTS:
        raise SettingsError(f"--workers must be from 1 to {MOST_FRONTS}, got {fronts}")
    sockets = inherited_sockets(config) or listen(config)
    ignore_signals()  # until they can be handled: the default kills the process
    allow_open_files(64 + 8 * fronts)
    supervisor = Supervisor(path, config, load, fronts, sockets, log_level)
    asyncio.run(supervisor.run())
    if supervisor.restart and not supervisor.failed:
        restart_in_place([each.fileno() for each in sockets], config)
    for each in sockets:
        each.close()
    return not supervisor.failed
