"""Signals to ``bpac serve``: SIGHUP reloads and SIGUSR2 restarts, under load and at any moment, without a loss."""

import signal
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from bpac.testing import Reply, ScriptedServer
from tests.gateway.configured import get_json, wait_for
from tests.gateway.operations.asking import ask
from tests.gateway.serving import COMMAND, Process


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
            thread.join(60.0)

    def _send(self) -> None:
        while not self._enough.is_set():
            try:
                self.statuses.append(ask(self._url)[0])
            except OSError as error:
                self.statuses.append(repr(error))

    def more(self, count: int) -> None:
        """Wait for so many further responses."""
        wanted = len(self.statuses) + count
        wait_for(lambda: len(self.statuses) >= wanted, 60.0)


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
        assert gateway.process.wait(60.0) == 0
        gateway.close()


def test_sigusr2_restarts_without_refusing_a_connection(tmp_path: Path) -> None:
    """The same process id, three times under load: no connection is refused, and no round is lost or charged twice."""
    with ScriptedServer(Reply("42")) as models:
        gateway = Process(tmp_path, models.base_url)
        gateway.log_level = "info"
        gateway.start()
        try:
            with Hammer(gateway.url) as hammer:
                for _ in range(3):
                    hammer.more(8)
                    starts = _count(tmp_path, "Application startup complete")
                    gateway.process.send_signal(signal.SIGUSR2)
                    wait_for(lambda n=starts: _count(tmp_path, "Application startup complete") > n, 60.0)  # type: ignore[misc]
                    hammer.more(8)
            assert set(hammer.statuses) == {200}
            assert _count(tmp_path, "restarting") == 3
            wait_for(lambda: _game(gateway)["owed"] == 0)
            found = _game(gateway)
            assert (found["game"], found["steps"]) == (1, len(hammer.statuses))
            assert found["forfeits"] == {}
        finally:
            assert gateway.end(signal.SIGTERM) == 0
            gateway.close()


def test_a_bad_configuration_prevents_the_restart(tmp_path: Path) -> None:
    """A new process could not start with it, so the old one goes on."""
    with ScriptedServer(Reply("42")) as models:
        gateway = Process(tmp_path, models.base_url)
        gateway.start()
        try:
            gateway.config.write_text("[gateway")
            gateway.process.send_signal(signal.SIGUSR2)
            wait_for(lambda: _count(tmp_path, "no restart: the configuration cannot be used") == 1)
            assert ask(gateway.url)[0] == 200
        finally:
            assert gateway.end(signal.SIGTERM) == 0
            gateway.close()


def test_a_restart_that_could_not_start_is_prevented(tmp_path: Path) -> None:
    """A port that is taken, or a store that cannot be written, would leave no gateway at all: the old one goes on."""
    with ScriptedServer(Reply("42")) as models, socket.create_server(("127.0.0.1", 0)) as taken:
        gateway = Process(tmp_path, models.base_url)
        gateway.start()
        good = gateway.config.read_text()
        bad = {
            "cannot listen on": good.replace(f":{gateway.port}", f":{taken.getsockname()[1]}"),
            "cannot be written": good.replace(gateway.store, f"sqlite:///{tmp_path / 'nowhere' / 'bpac.db'}"),
        }
        try:
            for number, (said, text) in enumerate(bad.items(), start=1):
                gateway.config.write_text(text)
                gateway.process.send_signal(signal.SIGUSR2)
                wait_for(lambda n=number: _count(tmp_path, "no restart: the configuration") == n)  # type: ignore[misc]
                assert said in (tmp_path / "log.jsonl").read_text()
                assert ask(gateway.url)[0] == 200
        finally:
            assert gateway.end(signal.SIGTERM) == 0
            gateway.close()


def test_a_socket_of_systemd_is_used_and_outlives_the_process(tmp_path: Path) -> None:
    """While no gateway runs, connections wait in the socket; the next one answers them."""
    with ScriptedServer(Reply("42")) as models, socket.create_server(("127.0.0.1", 0)) as listener:
        gateway = Process(tmp_path, models.base_url)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        first = _activated(gateway, listener)
        try:
            assert ask(url)[0] == 200
            first.send_signal(signal.SIGTERM)
            assert first.wait(60.0) == 0
            with ThreadPoolExecutor(1) as pool:
                waiting = pool.submit(ask, url)
                second = _activated(gateway, listener)
                try:
                    assert waiting.result(60.0)[0] == 200
                finally:
                    second.send_signal(signal.SIGTERM)
                    assert second.wait(60.0) == 0
        finally:
            gateway.close()


def test_an_open_gateway_refuses_a_socket_that_others_can_reach(tmp_path: Path) -> None:
    """Without keys everybody could use it."""
    with socket.create_server(("0.0.0.0", 0)) as listener:
        gateway = Process(tmp_path, "http://127.0.0.1:9/v1")
        refused = _activated(gateway, listener, stderr=subprocess.PIPE)
        _, text = refused.communicate(timeout=60.0)
        gateway.close()
        assert refused.returncode != 0
        assert b"can be reached by other machines" in text


# Passes a descriptor on as 3, with the id of the process that it becomes, as systemd does.
ACTIVATE = """
import os, sys
os.dup2(int(sys.argv[1]), 3, inheritable=True)
os.environ |= {"LISTEN_FDS": "1", "LISTEN_PID": str(os.getpid())}
os.execv(sys.executable, [sys.executable, *sys.argv[2:]])
"""


def _activated(gateway: Process, listener: socket.socket, **options: Any) -> "subprocess.Popen[bytes]":
    """``bpac serve`` with an inherited socket."""
    words = [sys.executable, "-c", ACTIVATE, str(listener.fileno()), *COMMAND[1:], "serve", str(gateway.config)]
    return subprocess.Popen(words, pass_fds=[listener.fileno()], **options)


def _count(directory: Path, message: str) -> int:
    return (directory / "log.jsonl").read_text().count(f'"message": "{message}')


def _configuration(gateway: Process) -> dict[str, object]:
    found: dict[str, object] = get_json(f"{gateway.url}/v1/status")["configuration"]
    return found


def _game(gateway: Process) -> dict[str, Any]:
    (found,) = get_json(f"{gateway.url}/v1/status")["routes"]["homework"]
    assert isinstance(found, dict)
    return found
