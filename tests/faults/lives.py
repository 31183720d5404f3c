"""Gateways in processes of their own that start at once: a parent that has imported everything forks each of them.

Nothing of a life is known to the next but what is in the store: the parent never served.
"""

import importlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from tests.gateway.serving import main


class Lives:
    """The parent.

    Parameters
    ----------
    environment: variables that all gateways get in addition.
    """

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        self._environment = environment or {}
        self._parent: subprocess.Popen[str] | None = None
        self._living: set[int] = set()

    def start(self, arguments: list[str], log: Path) -> int:
        """Run a command of ``bpac``; the id of its process."""
        if self._parent is None:
            self._parent = subprocess.Popen(
                [sys.executable, "-m", "tests.faults.lives"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **self._environment},
            )  # fmt: skip
        assert self._parent.stdin is not None
        assert self._parent.stdout is not None
        self._parent.stdin.write(json.dumps([arguments, str(log)]) + "\n")
        self._parent.stdin.flush()
        pid = int(self._parent.stdout.readline())
        self._living.add(pid)
        return pid

    def is_alive(self, pid: int) -> bool:
        """Whether a process that was started here still runs.

        The system may give the number of one that has ended to a stranger: only a child of the parent is meant.
        """
        if pid in self._living and (self._parent is None or _parent_of(pid) != self._parent.pid):
            self._living.discard(pid)
        return pid in self._living

    def end(self, pid: int, how: signal.Signals = signal.SIGKILL, seconds: float = 60.0) -> None:
        """End a process by a signal, and wait until it is gone; nothing happens if it has ended."""
        if not self.is_alive(pid):
            return
        os.kill(pid, how)
        give_up = time.monotonic() + seconds
        while self.is_alive(pid):
            assert time.monotonic() < give_up, "it does not end"
            time.sleep(0.005)

    def close(self) -> None:
        """End everything that is left."""
        for pid in list(self._living):
            self.end(pid)
        if self._parent is not None:
            self._parent.communicate(timeout=60.0)


def _parent_of(pid: int) -> int:
    """The process that started another one; 0 if there is none of that number."""
    try:
        # The name, which stands before, is in brackets and may contain anything.
        return int(Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return 0


def _fork_all() -> None:
    importlib.import_module("bpac.gateway.server")
    importlib.import_module("bpac.gateway.shared.shared_service")
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the system forgets children that have ended
    for line in sys.stdin:
        arguments, log = json.loads(line)
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            written = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(written, 1)
            os.dup2(written, 2)
            os._exit(main(arguments))
        sys.stdout.write(f"{pid}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _fork_all()
