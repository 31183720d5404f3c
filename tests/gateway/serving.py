"""A gateway in a process of its own, which can be killed."""

import argparse
import json
import signal
import socket
import subprocess
import sys
import urllib.error
from pathlib import Path
from typing import Any

from bpac.gateway.commands import add_commands
from tests.gateway.configured import get_json, settings, wait_for


class Process:
    """``bpac serve`` in a process of its own.

    Parameters
    ----------
    directory: where its configuration and its store are.
    base_url: where its models are.
    """

    def __init__(self, directory: Path, base_url: str, **route: Any) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.store = f"sqlite:///{directory / 'bpac.db'}"
        self.url = f"http://127.0.0.1:{self.port}"
        self.config = directory / "gateway.toml"
        gateway = {"listen": f"127.0.0.1:{self.port}", "store": self.store, "snapshot_every": 500}
        self.config.write_text(to_toml(settings(base_url, gateway=gateway, **route)))
        self._log = (directory / "log.jsonl").open("ab")

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.gateway.serving", "serve", str(self.config), "--log-level", "warning"],
            stderr=self._log,
        )
        wait_for(self._ready, 30.0)

    def _ready(self) -> bool:
        assert self.process.poll() is None, "it did not start: see log.jsonl"
        try:
            return bool(get_json(f"{self.url}/readyz"))
        except (urllib.error.URLError, ConnectionError):
            return False

    def end(self, how: signal.Signals) -> int:
        """End it by a signal; its exit code."""
        self.process.send_signal(how)
        return self.process.wait(30.0)

    def close(self) -> None:
        """Let go of its log."""
        self._log.close()


def to_toml(data: dict[str, Any], path: str = "") -> str:
    """A configuration as text; simple values only."""
    lines = [f"{key} = {json.dumps(value)}" for key, value in data.items() if not isinstance(value, dict)]
    text = (f"[{path}]\n" if path else "") + "\n".join(lines) + "\n\n"
    tables = {key: value for key, value in data.items() if isinstance(value, dict)}
    return text + "".join(to_toml(value, f"{path}.{key}" if path else key) for key, value in tables.items())


def main(arguments: list[str] | None = None) -> int:
    """The gateway's commands by themselves."""
    parser = argparse.ArgumentParser()
    add_commands(parser.add_subparsers(required=True))
    options = parser.parse_args(arguments)
    result: int = options.run(options)
    return result


if __name__ == "__main__":
    sys.exit(main())
