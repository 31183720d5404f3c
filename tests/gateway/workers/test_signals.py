"""Signals to a gateway with several processes, and the end of the supervisor itself."""

import signal
import socket
import subprocess
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from bpac.errors import SettingsError
from bpac.gateway.config.file import load_config
from bpac.gateway.workers.supervisor import supervise
from bpac.routing.journal.entries import Stopped
from bpac.stores import open_store
from bpac.testing import Reply, ScriptedServer
from tests.gateway.configured import get_json, settings, wait_for
from tests.gateway.operations.asking import ask
from tests.gateway.operations.test_signals import Hammer
from tests.gateway.served import journal_at
from tests.gateway.serving import COMMAND, to_toml
from tests.gateway.workers.crew import Crew
from tests.processes import has_ended


def test_reloads_and_restarts_lose_no_request(tmp_path: Path) -> None:
    """SIGHUP with good and bad files, SIGUSR2, SIGTERM, under load: all is answered, every round counted once."""
    with ScriptedServer(Reply("42")) as models:
        gateway = Crew(tmp_path, models.base_url)
        try:
            gateway.start()
            good = gateway.config.read_text()
            with Hammer(gateway.url) as hammer:
                for number in (1, 2):
                    gateway.config.write_text(good.replace("epsilon = 0.2", f"epsilon = 0.2\ndeadline = {number}00"))
                    gateway.process.send_signal(signal.SIGHUP)
                    wait_for(lambda count=number: _configuration(gateway)["reloads"] == count)  # type: ignore[misc]
                    hammer.more(8)
                gateway.config.write_text(good + "\n[routes.homework\n")
                gateway.process.send_signal(signal.SIGHUP)
                wait_for(lambda: _configuration(gateway)["failed_reload"] is not None)
                gateway.process.send_signal(signal.SIGUSR2)
                wait_for(lambda: "no restart: the configuration cannot be used" in gateway.log_lines())
                gateway.config.write_text(good)
                before = set(gateway.pids().values())
                gateway.process.send_signal(signal.SIGUSR2)
                wait_for(lambda: gateway.complete() and not before & set(gateway.pids().values()))
                hammer.more(8)
            assert set(hammer.statuses) == {200}
            wait_for(lambda: gateway.game()["owed"] == 0)
            assert gateway.game()["steps"] == len(hammer.statuses)
            assert gateway.game()["forfeits"] == {}
            assert gateway.workers()["lost"] == 0
            _change_the_terms(gateway, good)
            assert gateway.end(signal.SIGTERM) == 0
        finally:
            gateway.close()


def _change_the_terms(gateway: Crew, text: str) -> None:
    """All fronts move to another game, under load."""
    with Hammer(gateway.url, 2) as hammer:
        hammer.more(4)
        gateway.config.write_text(text.replace("epsilon = 0.2", "epsilon = 0.1"))
        gateway.process.send_signal(signal.SIGHUP)
        wait_for(lambda: gateway.game()["game"] == 2 and gateway.game()["steps"] > 4)
    assert set(hammer.statuses) == {200}
    wait_for(lambda: all(front["current_configuration"] for front in gateway.workers()["fronts"]))


def test_the_other_processes_end_with_the_supervisor(tmp_path: Path) -> None:
    """They finish what they have under way, and the journal is closed cleanly."""
    with ScriptedServer(Reply("42")) as models:
        gateway = Crew(tmp_path, models.base_url)
        try:
            gateway.start()
            assert ask(gateway.url)[0] == 200
            others = list(gateway.pids().values())
            gateway.process.kill()
            gateway.process.wait()
            wait_for(lambda: all(map(has_ended, others)))
            assert isinstance(journal_at(gateway.store)[-1], Stopped)
            assert "the supervisor has ended: this process stops, too" in gateway.log_lines()
        finally:
            gateway.close()


def test_a_gateway_that_cannot_start_says_why_and_ends(tmp_path: Path) -> None:
    """A store in use, an address in use, another store, a number of workers that is none."""
    store = tmp_path / "bpac.db"
    values = settings("http://127.0.0.1:9/v1", gateway={"store": f"sqlite:///{store}"})
    path = tmp_path / "gateway.toml"
    path.write_text(to_toml(values))
    with closing(open_store(f"sqlite:///{store}")):
        said = _failed(["serve", str(path), "--workers", "1"])
    assert "owner could not start" in said
    assert "is in use by process" in said
    config = load_config(path)
    with pytest.raises(SettingsError, match="--workers must be from 1 to 256"):
        supervise(path, lambda: config, 0, "info")
    redis = msgspec.structs.replace(config, store="redis://127.0.0.1")
    with pytest.raises(SettingsError, match="start several gateways without --workers"):
        supervise(path, lambda: redis, 2, "info")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        used = msgspec.structs.replace(config, listen=f"127.0.0.1:{taken.getsockname()[1]}")
        with pytest.raises(SettingsError, match="cannot listen on"):
            supervise(path, lambda: used, 2, "info")


def _failed(arguments: list[str]) -> str:
    """What a command writes that must fail."""
    ended = subprocess.run([*COMMAND, *arguments], stderr=subprocess.PIPE, timeout=60.0, check=False)
    assert ended.returncode != 0
    return ended.stderr.decode()


def _configuration(gateway: Crew) -> dict[str, object]:
    found = get_json(f"{gateway.url}/v1/status")["configuration"]
    assert isinstance(found, dict)
    return found
