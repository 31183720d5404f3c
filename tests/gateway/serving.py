"""A gateway in a process of its own, which can be killed."""

import importlib
import json
import os
import signal
import subprocess
import sys
import urllib.error
from pathlib import Path
from typing import Any

from bpac.cli.program import build_parser
from tests.gateway.configured import get_json, settings, wait_for
from tests.ports import free_port

COMMAND = [sys.executable, "-m", "tests.gateway.serving"]
FORK = "fork"


class Process:
    """``bpac serve`` in a process of its own.

    Parameters
    ----------
    directory: where its configuration and its store are.
    base_url: where its models are.
    """

    log_level = "warning"

    def __init__(self, directory: Path, base_url: str, **route: Any) -> None:
        self.port = free_port()
        self.store = f"sqlite:///{directory / 'bpac.db'}"
        self.url = f"http://127.0.0.1:{self.port}"
        self.config = directory / "gateway.toml"
        gateway = {"listen": f"127.0.0.1:{self.port}", "store": self.store, "snapshot_every": 500}
        self.config.write_text(to_toml(settings(base_url, gateway=gateway, **route)))
        self.directory = directory
        self._log = (directory / "log.jsonl").open("ab")

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self.process = subprocess.Popen([*COMMAND, *self._arguments], stderr=self._log)
        wait_for(self._ready, 60.0)

    def end(self, how: signal.Signals) -> int:
        """End it by a signal; its exit code."""
        self.process.send_signal(how)
        return self.process.wait(60.0)

    def game(self) -> dict[str, Any]:
        """The status of the one game of the one route."""
        (game,) = get_json(f"{self.url}/v1/status")["routes"]["homework"]
        assert isinstance(game, dict)
        return game

    def log_lines(self) -> str:
        """What it has logged."""
        return (self.directory / "log.jsonl").read_text()

    def close(self) -> None:
        """End it if it still runs, and let go of its log."""
        if hasattr(self, "process") and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self._log.close()

    @property
    def _arguments(self) -> list[str]:
        return ["serve", str(self.config), "--log-level", self.log_level]

    def _ready(self) -> bool:
        assert self.process.poll() is None, "it did not start: see log.jsonl"
        try:
            return bool(get_json(f"{self.url}/readyz"))
        except (urllib.error.URLError, ConnectionError):
            return False


class ManyLives(Process):
    """The same, for many lives: a parent that has imported everything forks each of them, in no time.

    Nothing of a life is known to the next but what is in the store: the parent never served.
    """

    def __init__(self, directory: Path, base_url: str, **route: Any) -> None:
        super().__init__(directory, base_url, **route)
        self.process = subprocess.Popen(
            [*COMMAND, FORK], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log
        )
        self._living: int | None = None

    def start(self) -> None:
        """Start a life, and wait until it answers."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(self._arguments).encode() + b"\n")
        self.process.stdin.flush()
        self._living = self._told()
        wait_for(self._ready, 60.0)

    def end(self, how: signal.Signals) -> int:
        """End it by a signal; its exit code."""
        assert self._living is not None
        os.kill(self._living, how)
        self._living = None
        return self._told()

    def close(self) -> None:
        """End what is still there, the parent too."""
        if self._living is not None:
            os.kill(self._living, signal.SIGKILL)
        self.process.communicate(timeout=60.0)
        super().close()

    def _told(self) -> int:
        assert self.process.stdout is not None
        return int(self.process.stdout.readline())


def fork_lives() -> int:
    """Run the commands that come in, each in a process forked for it; say its number, and then its exit code."""
    importlib.import_module("bpac.gateway.server")
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            os._exit(main(json.loads(line)))
        _tell(pid)
        _tell(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    return 0


def _tell(number: int) -> None:
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()


def to_toml(data: dict[str, Any], path: str = "") -> str:
    """A configuration as TOML; simple values only."""
    lines = [f"{key} = {json.dumps(value)}" for key, value in data.items() if not isinstance(value, dict)]
    text = (f"[{path}]\n" if path else "") + "\n".join(lines) + "\n\n"
    tables = {key: value for key, value in data.items() if isinstance(value, dict)}
    return text + "".join(to_toml(value, f"{path}.{key}" if path else key) for key, value in tables.items())


def main(arguments: list[str] | None = None) -> int:
    """The gateway's commands without the other commands."""
    words = sys.argv[1:] if arguments is None else arguments
    options = build_parser(words[0]).parse_args(words)
    result: int = options.run(options)
    return result


if __name__ == "__main__":
    sys.exit(fork_lives() if sys.argv[1:] == [FORK] else main())
