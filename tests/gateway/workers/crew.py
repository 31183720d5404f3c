"""``bpac serve --workers N`` in processes of their own, each of which can be killed."""

import os
import signal
import time
import urllib.error
from pathlib import Path
from typing import Any

from tests.gateway.configured import get_json, wait_for
from tests.gateway.serving import Process


class Crew(Process):
    """A gateway with several processes.

    Parameters
    ----------
    directory, base_url: as for ``Process``.
    fronts: the number of fronts.
    """

    log_level = "info"

    def __init__(self, directory: Path, base_url: str, fronts: int = 2, **route: Any) -> None:
        self.fronts = fronts
        super().__init__(directory, base_url, **route)

    def start(self) -> None:
        """Start it, and wait until all fronts are there."""
        super().start()
        wait_for(self.complete)

    @property
    def _arguments(self) -> list[str]:
        return [*super()._arguments, "--workers", str(self.fronts)]

    def workers(self) -> dict[str, Any]:
        """What the status says about the processes."""
        found = get_json(f"{self.url}/v1/status")["workers"]
        assert isinstance(found, dict)
        return found

    def pids(self) -> dict[str, int]:
        """The processes that are connected, by name: ``owner``, ``front 0``, …; none while the owner is away."""
        try:
            workers = self.workers()
        except (urllib.error.URLError, OSError):
            return {}
        fronts = {f"front {front['front']}": int(front["pid"]) for front in workers["fronts"]}
        return {"owner": int(workers["owner"]["pid"]), **fronts}

    def complete(self) -> bool:
        """Whether the owner answers and all fronts are connected to it."""
        return len(self.pids()) == self.fronts + 1

    def pid(self, name: str) -> int:
        """The process id of ``owner``, ``front 0`` and so on."""
        return self.pids()[name]

    def signal(self, name: str, number: signal.Signals) -> None:
        """Send a signal to one of the processes."""
        os.kill(self.pid(name), number)

    def killed(self, name: str) -> float:
        """Kill a process, wait until another one has taken its place, and return the seconds that this took."""
        pid = self.pid(name)
        os.kill(pid, signal.SIGKILL)
        began = time.monotonic()
        wait_for(lambda: len(pids := self.pids()) == self.fronts + 1 and pids[name] != pid)
        return time.monotonic() - began
