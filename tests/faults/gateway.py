"""One gateway of a scene, in a process of its own."""

import signal
import time
import urllib.error
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.faults.lives import Lives
from tests.gateway.configured import get_json, settings, wait_for
from tests.gateway.serving import to_toml
from tests.ports import free_port


class Gateway:
    """A gateway.

    Parameters
    ----------
    lives: starts it.
    directory: for its configuration and its log.
    base_url: where its models are.
    store: the address of its store.
    route: settings of its route.
    """

    def __init__(self, lives: Lives, directory: Path, base_url: str, store: str, **route: Any) -> None:
        directory.mkdir()
        self._lives = lives
        self.directory = directory
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.config = directory / "gateway.toml"
        gateway = {"listen": f"127.0.0.1:{self.port}", "store": store, "snapshot_every": 300}
        self.config.write_text(to_toml(settings(base_url, gateway=gateway, **route)))
        self.pid = 0

    def start(self) -> None:
        """Start it."""
        log = self.directory / "log.jsonl"
        self.pid = self._lives.start(["serve", str(self.config), "--log-level", "warning"], log)

    def end(self, how: signal.Signals = signal.SIGKILL) -> None:
        """End it."""
        self._lives.end(self.pid, how)

    def is_alive(self) -> bool:
        """Whether its process runs."""
        return self._lives.is_alive(self.pid)

    def wait_until_ready(self) -> None:
        """Wait until it answers; if it ends instead, or takes too long, the error has the end of its log."""
        give_up = time.monotonic() + 60.0
        while not self._is_ready():
            assert self.is_alive(), f"a gateway has ended: {self._last_lines()}"
            assert time.monotonic() < give_up, f"a gateway is not ready: {self._last_lines()}"
            time.sleep(0.01)

    def _is_ready(self) -> bool:
        try:
            return bool(get_json(f"{self.url}/readyz"))
        except (urllib.error.URLError, OSError):
            return False

    def _last_lines(self) -> str:
        return "\n".join((self.directory / "log.jsonl").read_text(encoding="utf-8").splitlines()[-20:])

    def game(self) -> dict[str, Any]:
        """The status of the one game of the one route."""
        (game,) = get_json(f"{self.url}/v1/status")["routes"]["homework"]
        assert isinstance(game, dict)
        return game

    def shared(self) -> dict[str, Any]:
        """How it takes part in the game."""
        found = self.game()["shared"]
        assert isinstance(found, dict)
        return found


def settled(gateways: Sequence[Gateway]) -> None:
    """Wait until all that happened is in the journal, every audit has an outcome, and all gateways show the same."""

    def is_settled() -> bool:
        games = [gateway.game() for gateway in gateways]
        done = all(not game["owed"] and not game["shared"]["lag"] for game in games)
        whole = all(game["shared"]["replicas"] == len(games) and not game["shared"]["error"] for game in games)
        same = len({(game["game"], game["steps"], game["threshold"]) for game in games}) == 1
        return done and whole and same and sum(game["shared"]["folding"] for game in games) == 1

    wait_for(is_settled)
    time.sleep(0.06)  # the longest pause of a folder
