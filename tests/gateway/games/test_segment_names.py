"""Names of segments: a key that is rotated keeps its game, and names may be written in any script."""

import json
import socket
import unicodedata
from pathlib import Path
from typing import Any

import pytest

from bpac.cli.program import main
from bpac.testing import Reply, ScriptedServer
from tests.gateway.configured import OPERATOR, bearer, settings
from tests.gateway.raw import post
from tests.gateway.running import ASK, Running, RunningGateway, pair
from tests.gateway.serving import to_toml

MODELS = pair(Reply("41"), Reply("42"))


def games_after(config: dict[str, Any], key: str) -> dict[str, int]:
    """The steps of each segment after one more request with a key."""
    with RunningGateway(config) as gateway:
        assert post(gateway.url, ASK, headers=bearer(key)).status == 200
        gateway.idle()
        return {game.segment: game.router.step for game in gateway.service.live_games()}


@pytest.mark.parametrize("name", ["team", "Müller-東京", "env:TEAM_KEY"])
def test_a_rotated_key_keeps_its_game(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """The segment is the name of the key, or of the variable it comes from, and not the key."""
    with ScriptedServer(MODELS) as models:
        for step, key in enumerate(["first-key", "second-key", "third-key"], start=1):
            monkeypatch.setenv("TEAM_KEY", key)
            if not name.startswith("env:"):
                keys: Any = {"keys": [OPERATOR, {"name": name, "key": key, "roles": ["call"]}]}
            else:
                keys = {"keys": [OPERATOR], "api_keys": [name]}
            gateway = {"store": f"sqlite:///{tmp_path / 'bpac.db'}", **keys}
            config = settings(models.base_url, gateway=gateway, segment_by="api_key")
            assert games_after(config, key) == {name: step}


def test_a_key_without_a_name_is_warned_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Its segment is named after its hash, and begins anew when it is rotated: the log says so at the start."""
    with ScriptedServer(MODELS) as models:
        for key in ("first-key", "second-key"):
            gateway = {"store": f"sqlite:///{tmp_path / 'bpac.db'}", "keys": [OPERATOR], "api_keys": [key]}
            caplog.clear()
            found = games_after(settings(models.base_url, gateway=gateway, segment_by="api_key"), key)
            assert "1 of the api_keys have no name" in caplog.text
            assert key not in caplog.text
    assert list(found.values()) == [1, 1]


def test_a_key_never_gets_the_segment_of_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable and a name that are spelled alike are two tenants."""
    monkeypatch.setenv("TEAM", "from-variable")
    keys = [OPERATOR, {"name": "TEAM", "key": "from-name", "roles": ["call"]}]
    with ScriptedServer(MODELS) as models:
        gateway = {"store": f"sqlite:///{tmp_path / 'bpac.db'}", "keys": keys, "api_keys": ["env:TEAM"]}
        config = settings(models.base_url, gateway=gateway, segment_by="api_key")
        games_after(config, "from-variable")
        assert games_after(config, "from-name") == {"env:TEAM": 1, "TEAM": 1}


NAMES = ["München", "東京", "Ελλάδα", "🚀", "a b"]


@pytest.mark.parametrize("by", ["header:x-tenant", "metadata:tenant", "user", "model"])
def test_names_may_be_written_in_any_script(tmp_path: Path, capsys: pytest.CaptureFixture[str], by: str) -> None:
    """The same name is shown by status, metrics and export as it was sent, and goes on after a restart."""
    with ScriptedServer(MODELS) as models:
        config = settings(models.base_url, gateway={"store": f"sqlite:///{tmp_path / 'bpac.db'}"}, segment_by=by)
        for step in (1, 2):
            with RunningGateway(config) as gateway:
                for name in NAMES:
                    assert ask(gateway, by, name) == 200
                gateway.idle()
                found = {game.segment: game.router.step for game in gateway.service.live_games()}
                assert found == dict.fromkeys(NAMES, step)
                metrics = post(gateway.url, b"", "/metrics", method="GET").body.decode()
                assert all(f'segment="{name}"' in metrics for name in NAMES)
    (tmp_path / "gateway.toml").write_text(to_toml(config))
    assert main(["export", str(tmp_path / "gateway.toml"), "--segment", "東京"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[0])["segment"] == "東京"


def ask(gateway: RunningGateway, by: str, name: str) -> int:
    """The status of a request of a segment; a header is sent as the bytes of its UTF-8."""
    if by == "header:x-tenant":
        return send_raw(gateway, name.encode())
    change: dict[str, Any] = {"user": name} if by == "user" else {"metadata": {"tenant": name}}
    return post(gateway.url, {**ASK, "model": f"homework:{name}"} if by == "model" else ASK | change).status


def send_raw(gateway: RunningGateway, tenant: bytes) -> int:
    """The status of a request with these bytes in its header."""
    body = json.dumps(ASK).encode()
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=60) as connection:
        connection.sendall(
            b"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n"
            b"content-type: application/json\r\nx-tenant: %b\r\ncontent-length: %d\r\n\r\n%b"
            % (tenant, len(body), body)
        )
        with connection.makefile("rb") as reply:
            return int(reply.readline().split()[1])


def test_one_name_is_one_segment_however_it_is_encoded() -> None:
    """UTF-8, Latin-1 and accents written as characters of their own give one game, not three."""
    with Running(MODELS, segment_by="header:x-tenant") as (gateway, _):
        decomposed = unicodedata.normalize("NFD", "München")
        assert decomposed != "München"
        for sent in ("München".encode(), "München".encode("latin-1"), decomposed.encode()):
            assert send_raw(gateway, sent) == 200
        gateway.idle()
        assert {game.segment: game.router.step for game in gateway.service.live_games()} == {"München": 3}


@pytest.mark.parametrize("name", ['"\\ud800"', '"\\udfff' + "x" * 300 + '"', '"\\u0000"', '"\\u202e"'])
def test_a_name_that_is_no_text_harms_nobody(tmp_path: Path, name: str) -> None:
    """Half of a surrogate pair, or a name of control characters, does not stop the store: others are answered."""
    gateway_settings = {"store": f"sqlite:///{tmp_path / 'bpac.db'}"}
    with Running(MODELS, gateway=gateway_settings, segment_by="metadata:tenant") as (gateway, _):
        body = json.dumps(ASK)[:-1].encode() + b', "metadata": {"tenant": %b}}' % name.encode()
        assert post(gateway.url, body).status in (200, 400)
        assert post(gateway.url, ASK).status == 200
        gateway.idle()
        assert gateway.service.store.failure is None


def test_a_name_cannot_write_to_the_operators_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Callers choose names: escape codes and line breaks are shown by status and backup, not obeyed."""
    with ScriptedServer(MODELS) as models:
        store = {"store": f"sqlite:///{tmp_path / 'bpac.db'}"}
        config = settings(models.base_url, gateway=store, segment_by="metadata:tenant")
        with RunningGateway(config) as gateway:
            assert ask(gateway, "metadata:tenant", "a\x1b[2J\nhomework b: 999 rounds\u202e") == 200
            gateway.idle()
    (tmp_path / "gateway.toml").write_text(to_toml(config))
    for words in (["status"], ["backup", "--out", str(tmp_path / "copy.db")]):
        assert main([words[0], str(tmp_path / "gateway.toml"), *words[1:]]) == 0
        lines = capsys.readouterr().out.split("\n")
        assert all(line.isprintable() for line in lines)
        assert sum(r"homework a\x1b[2J\nhomework b: 999 rounds\u202e" in line for line in lines) == 1
