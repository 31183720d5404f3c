"""Gateways with games in Redis archive old entries by themselves."""

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from bpac.cli.program import main
from bpac.errors import SettingsError
from bpac.gateway.config.file import Config
from bpac.gateway.server import new_server
from bpac.gateway.shared import archiving
from bpac.stores.redis.server.address import read_address
from bpac.stores.redis.store import RedisStore
from bpac.testing import ScriptedServer
from tests.gateway.configured import get_json, settings, wait_for
from tests.gateway.law import KnownPair, Question
from tests.gateway.measured import metric
from tests.gateway.raw import post
from tests.gateway.running import RunningGateway
from tests.gateway.serving import to_toml
from tests.redis_servers import RedisServer
from tests.stores.redis.shared_game import new_name

NOWHERE = "http://127.0.0.1:9/v1"


def test_the_folder_archives_by_itself_and_says_when_it_cannot(
    redis: RedisServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Entries move to files as they come; a folder that fails is a trouble; an audit reads files and stream."""
    monkeypatch.setattr(archiving, "AFTER_FAILURE", 0.05)
    monkeypatch.setattr(archiving, "NO_SNAPSHOT", 0.01)
    folder, config = tmp_path / "archives", tmp_path / "gateway.toml"
    archive = {"folder": str(folder), "keep": 30}
    shared = {"store": redis.address(new_name(), lease=0.5), "snapshot_every": 40, "archive": archive}
    with ScriptedServer(KnownPair()) as models:
        described = settings(models.base_url, gateway=shared)
        config.write_text(to_toml(described))
        with RunningGateway(described) as gateway:

            def ask(first: int, count: int) -> None:
                for number in range(first, first + count):
                    assert post(gateway.url, Question(number).body).status == 200
                gateway.idle()

            def files() -> list[Path]:
                return sorted(folder.glob("game-1-entries-*.parquet"))

            ask(0, 80)
            wait_for(lambda: bool(files()) and gateway.status()["shared"]["archive"]["file"] is not None)
            archived = metric(gateway, "bpac_archived_entries_total", route="homework") or 0
            assert archived >= 40
            # The folder is gone, and something else is in its place.
            folder.rename(tmp_path / "elsewhere")
            folder.write_text("")
            ask(80, 80)
            wait_for(lambda: gateway.status()["shared"]["archive"]["error"] is not None)
            (trouble,) = gateway.status()["troubles"]
            assert "old entries cannot be archived" in trouble["what"]
            assert any(
                "cannot be archived" in one["what"] for one in get_json(f"{gateway.url}/dashboard/data")["troubles"]
            )
            assert metric(gateway, "bpac_archive_failures_total", route="homework")
            folder.unlink()
            wait_for(lambda: gateway.status()["shared"]["archive"]["error"] is None)
            assert gateway.status()["troubles"] == []
            assert (metric(gateway, "bpac_archived_entries_total", route="homework") or 0) > archived
            # While it runs, the archives of both folders and the stream are one journal.
            where = [str(tmp_path / "elsewhere"), str(folder), str(config)]
            assert main(["audit", *where, "--strict", "--json"]) == 0
            report = json.loads(capsys.readouterr().out)
            assert report["rounds"] == gateway.status()["steps"] == 160
            assert main(["audit", *where[1:]]) == 2
            assert "entries 1 to" in capsys.readouterr().err
        with RunningGateway(described) as gateway:
            assert gateway.status()["steps"] == 160


def test_feedback_about_archived_decisions_is_refused_as_with_sqlite(
    redis: RedisServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their outcome is final: status 409, also if the key of their id is archived; 404 if there was none."""
    monkeypatch.setattr(archiving, "NO_SNAPSHOT", 0.01)
    archive = {"folder": str(tmp_path / "archives"), "keep": 10}
    shared: dict[str, Any] = {"store": redis.address(new_name(), lease=0.5), "snapshot_every": 20, "archive": archive}
    with ScriptedServer(KnownPair()) as models:
        described = settings(models.base_url, gateway=shared, loss="external")
        with RunningGateway(described) as gateway, closing(RedisStore(read_address(shared["store"]))) as store:

            def report(decision: str) -> tuple[int, str]:
                found = post(gateway.url, {"decision": decision, "loss": 0.0}, "/v1/feedback")
                return found.status, "" if found.status == 200 else found.json["error"]["code"]

            decisions = [post(gateway.url, Question(number).body).headers["x-bpac-decision"] for number in range(40)]
            for decision in decisions:
                assert report(decision) in ((200, ""), (409, "not_audited"))
            wait_for(lambda: gateway.status()["shared"]["archive"]["file"] is not None)
            assert report(decisions[0]) == (409, "already_resolved")
            # Keys of coins that are no longer needed are cut with the entries: then an id cannot be checked.
            (game,) = store.games()
            keys = store.of(game).keys
            store.client.command("ZADD", keys, 30, "00")
            assert store.client.command("ZREMRANGEBYSCORE", keys, "-inf", "(30") == 1
            assert report(decisions[0]) == report("dec-1-7-0123456789abcdef") == (409, "archived")
            for nothing in ("dec-1-35-0123456789abcdef", "dec-2-7-0123456789abcdef", "dec-1-0-0123456789abcdef"):
                assert report(nothing) == (404, "unknown_decision")


@pytest.mark.parametrize(
    ("gateway", "why"),
    [
        ({"store": "sqlite:///x.db", "archive": {"folder": "x"}}, "only games in Redis"),
        ({"store": "redis://x", "archive": {"folder": "", "keep": 5}}, "folder must name a directory"),
        ({"store": "redis://x", "archive": {"folder": "x", "keep": 0}}, "gateway.archive.keep"),
        ({"store": "redis://x", "archive": {"keep": 5}}, "gateway.archive.folder is missing"),
    ],
)
def test_bad_settings_of_archives_are_refused(gateway: dict[str, Any], why: str) -> None:
    """Each mistake is one line that names its place."""
    with pytest.raises(SettingsError, match=why):
        Config.read(settings(NOWHERE, gateway=gateway))


def test_a_folder_that_cannot_be_made_stops_the_start(redis: RedisServer, tmp_path: Path) -> None:
    """The gateway does not start without its archives."""
    (tmp_path / "file").write_text("")
    archive = {"folder": str(tmp_path / "file" / "archives")}
    config = settings(NOWHERE, gateway={"store": redis.address(new_name()), "archive": archive})
    with pytest.raises(SettingsError, match=r"gateway\.archive\.folder: .* cannot be made"):
        new_server(Config.read(config))
