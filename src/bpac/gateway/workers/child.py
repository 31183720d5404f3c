"""A process that the supervisor keeps running."""

import asyncio
import signal
from contextlib import suppress
from dataclasses import dataclass

# Seconds before a process that has ended soon after its start is started again, at first.
FIRST_PAUSE = 0.1


@dataclass(slots=True)
class Child:
    """A process that is kept running.

    Parameters
    ----------
    name: for the log.
    slot: its slot on the board.
    process: the running process; none while it waits to be started again.
    starts: how often it was started.
    pause: seconds before it is started again if it ends soon.
    first_beat: what the board said before it was started.
    beat, since: its latest sign of life, and when that came.
    alive: whether it has given one since it was started.
    stopped: the process id of the process that was told to stop; 0 if none was.
    """

    name: str
    slot: int
    process: "asyncio.subprocess.Process | None" = None
    starts: int = 0
    pause: float = FIRST_PAUSE
    first_beat: int = 0
    beat: int = 0
    since: float = 0.0
    alive: bool = False
    stopped: int = 0


def send_signal(child: Child, number: signal.Signals) -> None:
    """Send a signal to a process, if it runs."""
    if child.process is not None and child.process.returncode is None:
        with suppress(ProcessLookupError):
            child.process.send_signal(number)
