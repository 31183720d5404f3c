"""Work beside the requests that fails: the rest goes on, an operator sees it, and it is tried again."""

import asyncio
import json
from pathlib import Path
from typing import Any, NoReturn

import pytest

from bpac.errors import SettingsError
from bpac.gateway.config.file import Config
from bpac.gateway.games.live_game import LiveGame
from bpac.gateway.telemetry.logs import JsonFormatter
from bpac.gateway.workers.supervisor import Supervisor
from bpac.testing import Reply, ScriptedServer
from tests.gateway.configured import get_json, settings, wait_for
from tests.gateway.operations.asking import ask
from tests.gateway.running import RunningGateway

EXTERNAL: dict[str, Any] = {"loss": "external", "deadline": 0.1}
TEAM = {"name": "team", "key": "one", "roles": ["call"], "requests_per_day": 9}
OPERATOR = {"name": "operator", "key": "all", "roles": ["operator"]}


def game(gateway: RunningGateway) -> Any:
    """The status of the one game, to an operator."""
    (found,) = get_json(f"{gateway.url}/v1/status", "all")["routes"]["homework"]
    return found


def failing(gateway: RunningGateway, key: str = "") -> list[dict[str, Any]]:
    """What the status says; the dashboard says the same."""
    found: list[dict[str, Any]] = get_json(f"{gateway.url}/v1/status", key)["upkeep"]
    shown = {one["what"]: one for one in get_json(f"{gateway.url}/dashboard/data", key)["troubles"]}
    for one in found:
        if one["what"] in shown:  # it may work again by then
            assert (shown[one["what"]]["cost"], shown[one["what"]]["remedy"]) == (one["cost"], one["remedy"])
    return found


def test_deadlines_of_other_games_are_kept(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """A game that cannot be checked holds up no other; what callers wrote is in no status."""
    sweep, broken = LiveGame.sweep, True

    def sometimes(game: LiveGame, now: float) -> None:
        if broken and game.route.name == "homework":
            raise ValueError("what a caller wrote")
        sweep(game, now)

    monkeypatch.setattr(LiveGame, "sweep", sometimes)
    with ScriptedServer(Reply("42")) as models:
        config = settings(models.base_url, **EXTERNAL)
        config["routes"]["other"] = config["routes"]["homework"]
        with RunningGateway(config) as gateway:
            assert [ask(gateway.url, model=name)[0] for name in ("homework", "other")] == [200, 200]
            games = {game.route.name: game.router for game in gateway.service.live_games()}
            wait_for(lambda: games["other"].summary().forfeits == {"deadline": 1})
            wait_for(lambda: failing(gateway) != [])
            (trouble,) = failing(gateway)
            assert (trouble["work"], trouble["count"] >= 1) == ("deadlines", True)
            what = "deadlines of open requests and outcomes cannot be checked"
            assert trouble["what"] == f"{what}: ValueError in route homework"
            assert games["homework"].summary().forfeits == {}
            assert 'bpac_upkeep_failures_total{work="deadlines"}' in gateway.service.measurements()
            broken = False
            wait_for(lambda: games["homework"].summary().forfeits == {"deadline": 1})
            wait_for(lambda: failing(gateway) == [])
    logged = [record for record in caplog.records if record.message == what]
    assert len(logged) == 1  # and not one each second
    assert "what a caller wrote" not in JsonFormatter().format(logged[0])
    assert "upkeep works again" in caplog.text


def test_budgets_that_cannot_be_saved_are_a_trouble(tmp_path: Path) -> None:
    """Requests and deadlines go on, they are saved when that is possible, and the gateway can stop meanwhile."""
    unfinished, saved = tmp_path / "bpac.db.budgets.new", tmp_path / "bpac.db.budgets"
    stored = {"store": f"sqlite:///{tmp_path / 'bpac.db'}", "keys": [TEAM, OPERATOR]}
    with ScriptedServer(Reply("42")) as models:
        config = settings(models.base_url, gateway=stored, **EXTERNAL)
        with RunningGateway(config) as gateway:
            unfinished.mkdir()  # a file of that name cannot be written now
            assert ask(gateway.url, "one")[0] == 200
            wait_for(lambda: game(gateway)["forfeits"] == {"deadline": 1})
            wait_for(lambda: failing(gateway, "all") != [])
            (trouble,) = failing(gateway, "all")
            assert (trouble["work"], trouble["cost"]) == ("budgets", "after a restart they begin anew")
            unfinished.rmdir()
            wait_for(lambda: failing(gateway, "all") == [])
            assert json.loads(saved.read_text())["team"]["requests"] == 1
            unfinished.mkdir()
            assert ask(gateway.url, "one")[0] == 200
        with RunningGateway(config) as gateway:  # the store was closed
            assert game(gateway)["steps"] == 2


def test_a_failed_reload_is_a_trouble() -> None:
    """It stays one until a reload succeeds."""
    config = settings("http://127.0.0.1:9/v1")

    def troubles(gateway: RunningGateway) -> list[str]:
        return [one["what"] for one in get_json(f"{gateway.url}/dashboard/data")["troubles"]]

    with RunningGateway(config) as gateway:
        assert not gateway.reload(settings("http://127.0.0.1:9/v1", epsilon=2.0))
        assert any(what.startswith("the configuration was not reloaded: ") for what in troubles(gateway))
        assert gateway.reload(config)
        assert troubles(gateway) == []


def test_a_restart_that_cannot_be_prepared_leaves_the_gateway_as_it_is(caplog: pytest.LogCaptureFixture) -> None:
    """Whatever goes wrong, requests are answered, and the next signal is heeded."""
    with ScriptedServer(Reply("42")) as models, RunningGateway(settings(models.base_url)) as gateway:
        tried = []

        def load() -> NoReturn:
            tried.append(1)
            raise RuntimeError("can't start new thread") if len(tried) == 1 else SettingsError("a bad file")

        gateway._server._load = load
        for times in (1, 2):
            gateway.loop.call_soon_threadsafe(gateway._server._on_restart)
            wait_for(lambda times=times: caplog.text.count("no restart") == times)  # type: ignore[misc]
        assert ask(gateway.url)[0] == 200
        assert not gateway._server.should_exit


def test_a_supervisor_that_can_start_no_process_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """At the limit of processes SIGUSR2 restarts nothing, and stops nothing."""
    config = Config.read(settings("http://127.0.0.1:9/v1"))

    async def restart() -> Supervisor:
        supervisor = Supervisor(tmp_path, config, lambda: config, 1, [], "info")
        await supervisor._on_restart()
        return supervisor

    async def no_process(*_: object, **__: object) -> NoReturn:
        raise BlockingIOError("Resource temporarily unavailable")

    monkeypatch.setattr(asyncio, "create_subprocess_exec", no_process)
    supervisor = asyncio.run(restart())
    assert (supervisor.restart, supervisor.failed) == (False, False)
    assert "no restart: it could not be prepared" in caplog.text
