"""Signals to ``bpac serve``: SIGHUP reloads, under load and at any moment, and loses no request."""

import signal
import threading
from pathlib import Path

from bpac.testing import Reply, ScriptedServer
from tests.gateway.configured import get_json, wait_for
from tests.gateway.operations.asking import ask
from tests.gateway.serving import Process


class Hammer:
    """Clients that send one request after the other, each on a new connection, until they are stopped."""

    def __init__(self, url: str, clients: int = 4) -> None:
        self.statuses: list[int | str] = []
        self._url = url
        self._enough = threading.Event()
        self._threads = [threading.Thread(target=self._send) for _ in range(clients)]

    def __enter__(self) -> "Hammer":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._enough.set()
        for thread in self._threads:
            thread.join(30.0)

    def _send(self) -> None:
        while not self._enough.is_set():
            try:
                self.statuses.append(ask(self._url)[0])
            except OSError as error:
                self.statuses.append(repr(error))

    def more(self, count: int) -> None:
        """Wait for so many further responses."""
        wanted = len(self.statuses) + count
        wait_for(lambda: len(self.statuses) >= wanted, 30.0)


def test_sighup_reloads_without_losing_a_request(tmp_path: Path) -> None:
    """Good and bad files in turn, under load: every request is answered, every round counted once."""
    with ScriptedServer(Reply("42")) as models:
        gateway = Process(tmp_path, models.base_url)
        gateway.start()
        good = gateway.config.read_text()
        try:
            with Hammer(gateway.url) as hammer:
                for number in range(1, 5):
                    gateway.config.write_text(
                        good.replace("[routes.homework]", f"[routes.homework]\ndeadline = {number * 100}")
                    )
                    gateway.process.send_signal(signal.SIGHUP)
                    wait_for(lambda count=number: _configuration(gateway)["reloads"] == count)  # type: ignore[misc]
                    hammer.more(8)
                    gateway.config.write_text(good + "\n[routes.homework\n")
                    gateway.process.send_signal(signal.SIGHUP)
                    wait_for(lambda: _configuration(gateway)["failed_reload"] is not None)
                    hammer.more(8)
            assert set(hammer.statuses) == {200}
            wait_for(lambda: _game(gateway)["owed"] == 0)
            assert _game(gateway)["game"] == 1
            assert _game(gateway)["steps"] == len(hammer.statuses)
        finally:
            assert gateway.end(signal.SIGTERM) == 0
            gateway.close()
        lines = (tmp_path / "log.jsonl").read_text()
        assert "the configuration was not reloaded: the old one stays in use" in lines
        assert "gateway.toml: not TOML" in lines


def test_sighup_during_start_and_stop_does_not_kill(tmp_path: Path) -> None:
    """The process ends with code 0 however many signals come while it starts and stops."""
    with ScriptedServer(Reply("42")) as models:
        gateway = Process(tmp_path, models.base_url)
        gateway.start()
        for _ in range(50):
            gateway.process.send_signal(signal.SIGHUP)
        gateway.process.send_signal(signal.SIGTERM)
        for _ in range(50):
            gateway.process.send_signal(signal.SIGHUP)
        assert gateway.process.wait(30.0) == 0
        gateway.close()


def _configuration(gateway: Process) -> dict[str, object]:
    found: dict[str, object] = get_json(f"{gateway.url}/v1/status")["configuration"]
    return found


def _game(gateway: Process) -> dict[str, int]:
    (found,) = get_json(f"{gateway.url}/v1/status")["routes"]["homework"]
    assert isinstance(found, dict)
    return found
