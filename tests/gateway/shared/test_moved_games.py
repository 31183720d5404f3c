"""``bpac games move`` and ``merge`` with games in Redis."""

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from bpac.errors import StoreError
from bpac.gateway import service
from bpac.routing.audit.audit import audit_journal
from bpac.routing.policies import Portfolio
from bpac.stores import open_store
from bpac.stores.redis import adopting
from bpac.stores.redis.store import RedisStore
from bpac.testing import ScriptedServer
from tests.gateway.commands.test_games import export, games, states
from tests.gateway.commands.test_warm import asked
from tests.gateway.configured import settings, wait_for
from tests.gateway.law import KnownPair
from tests.gateway.running import RunningGateway
from tests.gateway.serving import to_toml
from tests.redis_servers import RedisServer
from tests.stores.redis.shared_game import new_name


def configured(directory: Path, base_url: str, store: str, **route: Any) -> dict[str, Any]:
    """A configuration with a store, also written to a directory of its own."""
    directory.mkdir(exist_ok=True)
    config = settings(base_url, gateway={"store": store, "snapshot_every": 40}, **{"epsilon": 0.4, **route})
    (directory / "gateway.toml").write_text(to_toml(config))
    return config


def audited(directory: Path, capsys: pytest.CaptureFixture[str], *more: str) -> int:
    """The rounds of an exported journal that passes its audit."""
    audit = audit_journal(export(directory, capsys, *more))
    assert (audit.differences, audit.unproved) == ([], [])
    return audit.rounds


def test_a_game_moves_to_redis_and_back_under_one_promise(
    redis: RedisServer, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite, Redis, another Redis, SQLite: one journal to the byte, each round once, and never live in two places."""
    first, second = (redis.address(new_name(), lease=0.5) for _ in range(2))
    files = [f"sqlite:///{tmp_path / name}" for name in ("one.db", "two.db")]
    with ScriptedServer(KnownPair()) as models:
        places = [tmp_path / name for name in ("a", "b", "c", "d")]
        configs = [
            configured(place, models.base_url, store)
            for place, store in zip(places, (files[0], first, second, files[1]), strict=True)
        ]
        asked(configs[0], 0, 60)
        for number, target in enumerate((first, second, str(tmp_path / "two.db"))):
            here, there = places[number], places[number + 1]
            before = export(here, capsys, "--game", "1")
            code, error = games(here, capsys, "move", "--game", 1, "--to", target)
            assert (code, "nothing was changed. With --yes:" in error) == (2, True)
            # The machine loses power when the game has ended here and is not listed there: it is live nowhere.
            with monkeypatch.context() as broken:
                if target.startswith("redis"):
                    broken.setattr(RedisStore, "list_game", _crash)
                    code, _ = games(here, capsys, "move", "--game", 1, "--to", target, "--yes")
                    assert code == 1
                    with closing(open_store(target, read_only=True)) as store:
                        assert store.games() == []
                    assert states(here, capsys)[0][1] == "ended"
            report = games(here, capsys, "move", "--game", 1, "--to", target, "--yes")
            assert (report["game"], report["rounds"]) == (1, 60 + number)
            assert export(there, capsys) == before
            assert states(here, capsys)[0][1:] == ("ended", f"moved to {report['to']}")
            assert games(here, capsys, "move", "--game", 1, "--to", target, "--yes")["head"] == report["head"]
            code, error = games(here, capsys, "move", "--game", 1, "--to", str(tmp_path / "three.db"), "--yes")
            assert (code, "is over (moved to" in error) == (2, True)
            (answer,) = asked(configs[number + 1], 100 + number, 1)
            assert answer["x-bpac-decision"].startswith(f"dec-1-{61 + number}-")
            (answer,) = asked(configs[number], 100, 1)
            assert answer["x-bpac-decision"].startswith("dec-2-1-")
            assert float(answer["x-bpac-threshold"]) == 0.0
            assert audited(there, capsys, "--game", "1") == 61 + number
            if number == 0:
                assert games(there, capsys, "list")["games"][0]["threshold"] > 0.0
        code, error = games(places[0], capsys, "move", "--game", 2, "--to", first, "--yes")
        assert (code, "has another game 2" in error) == (2, True)
        code, error = games(places[1], capsys, "move", "--game", 2, "--to", first, "--yes")
        assert (code, "is the store that the game is in" in error) == (2, True)
        code, error = games(places[1], capsys, "move", "--game", 2, "--to", "ftp://x", "--yes")
        assert (code, "a SQLite file or an address of Redis" in error) == (2, True)


def _crash(*_: object) -> bool:
    raise StoreError("the machine lost power")


def test_audits_that_wait_for_feedback_and_belong_to_nobody_have_a_deadline(
    redis: RedisServer, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The gateway that decided them is gone: the one that folds the game gives them up when their time is over."""
    monkeypatch.setattr(service, "SWEEP_EVERY", 0.05)
    address = redis.address(new_name(), lease=0.4)
    with ScriptedServer(KnownPair()) as models:
        here, there = (
            configured(tmp_path / name, models.base_url, store, loss="external", deadline=deadline)
            for name, store, deadline in (("a", f"sqlite:///{tmp_path / 'one.db'}", 3600.0), ("b", address, 0.3))
        )
        asked(here, 0, 3)
        games(tmp_path / "a", capsys, "move", "--game", 1, "--to", address, "--yes")
        with RunningGateway(there) as gateway:
            wait_for(lambda: gateway.status()["forfeits"] == {"deadline": 3})
            assert gateway.status()["owed"] == 0


def test_a_game_that_redis_cannot_decide_stays(
    redis: RedisServer, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A policy that needs the newest state is not moved there: the game goes on where it is."""
    with ScriptedServer(KnownPair()) as models:
        store = f"sqlite:///{tmp_path / 'one.db'}"
        config = configured(tmp_path, models.base_url, store)
        asked(config, 0, 3)
    monkeypatch.setattr(Portfolio, "in_order", False)  # no policy that the gateway knows needs it
    code, error = games(tmp_path, capsys, "move", "--game", 1, "--to", redis.address(new_name()), "--yes")
    assert (code, "newest state" in error) == (2, True)
    assert len(states(tmp_path, capsys)) == 1


def test_games_in_redis_are_merged_as_history(
    redis: RedisServer, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two games with another epsilon each teach a third, which gateways go on with; a failed merge changes nothing."""
    address = redis.address(new_name(), lease=0.5)
    with ScriptedServer(KnownPair()) as models:
        for epsilon, first in ((0.3, 0), (0.35, 500)):
            asked(configured(tmp_path, models.base_url, address, epsilon=epsilon), first, 80)
        config = configured(tmp_path, models.base_url, address)
        with monkeypatch.context() as broken:
            broken.setattr(adopting, "adopt", _crash)
            assert games(tmp_path, capsys, "merge", 1, 2, "--yes")[0] == 1
        assert len(states(tmp_path, capsys)) == 2
        report = games(tmp_path, capsys, "merge", 1, 2, "--yes")
        assert (report["history"], report["ended"], report["threshold"] > 0.0) == (160, None, True)
        (answer,) = asked(config, 900, 1)
        number = report["game"]
        assert answer["x-bpac-decision"].startswith(f"dec-{number}-1-")
        assert float(answer["x-bpac-threshold"]) == report["threshold"]
        again = games(tmp_path, capsys, "merge", 1, 2, "--yes")
        assert (again["ended"], again["threshold"]) == (number, report["threshold"])
        assert states(tmp_path, capsys)[2] == (number, "ended", "merged from games 1, 2")
    assert audited(tmp_path, capsys, "--game", str(number)) == 1
    code, error = games(tmp_path, capsys, "merge", 1, number, "--yes")
    assert (code, "began from history itself" in error) == (2, True)
