"""What gateways that share games have in common beside the games: budgets, reloads, and settings that are refused."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from openai import RateLimitError

from bpac.cli.program import main
from bpac.gateway.config.file import Config
from bpac.gateway.health.machine_checks import check_store
from bpac.gateway.server import new_server
from bpac.testing import Reply, ScriptedServer
from tests.gateway.configured import get_json, settings, wait_for
from tests.gateway.law import KnownPair, Question
from tests.gateway.operations.test_budgets import keys
from tests.gateway.raw import post
from tests.gateway.running import ASK, Running, RunningGateway
from tests.gateway.serving import to_toml
from tests.redis_servers import RedisServer
from tests.stores.redis.shared_game import new_name

NOWHERE = "http://127.0.0.1:9/v1"


def test_budgets_hold_over_all_gateways(redis: RedisServer) -> None:
    """What a tenant uses at one gateway counts at the other, and both say how much it is."""
    shared = {"store": redis.address(new_name(), timeout=30), **keys(requests_per_day=5)}
    with (
        Running(Reply("42"), gateway=shared) as (one, _),
        Running(Reply("42"), gateway=shared) as (other, _),
    ):
        clients = [gateway.client("one", max_retries=0) for gateway in (one, other)]
        for number in range(5):
            clients[number % 2].chat.completions.create(**ASK)
        for client in clients:
            with pytest.raises(RateLimitError, match="5 requests per day"):
                client.chat.completions.create(**ASK)


def test_a_budget_is_kept_by_two_gateways(redis: RedisServer, tmp_path: Path) -> None:
    """Drafts are kept once the budget has room, both gateways show one picture, and the journal passes its audit."""
    shared = {"store": redis.address(new_name(), lease=0.5)}
    with ScriptedServer(KnownPair()) as models:
        config = settings(models.base_url, gateway=shared, policy="budget", epsilon=0.4)
        (tmp_path / "gateway.toml").write_text(to_toml(config))
        with RunningGateway(config) as one, RunningGateway(config) as other, ThreadPoolExecutor(6) as pool:
            urls = [one.url, other.url]
            replies = list(pool.map(lambda n: post(urls[n % 2], Question(n).body), range(180)))
            assert {got.status for got in replies} == {200}
            for gateway in (one, other):
                gateway.idle()
                wait_for(lambda gateway=gateway: (gateway.status()["steps"], gateway.status()["owed"]) == (180, 0))  # type: ignore[misc]
            kept = sum(got.headers["x-bpac-answered-by"] == "draft" for got in replies)
            assert kept > 10
            assert one.status()["certificate"] == other.status()["certificate"]
    assert main(["audit", str(tmp_path / "gateway.toml"), "--strict"]) == 0


@pytest.mark.parametrize(("policy", "by"), [("never", "draft"), ("always", "expert"), ("offline", "expert")])
def test_thresholds_that_nobody_certifies_are_shared(
    redis: RedisServer, tmp_path: Path, capsys: pytest.CaptureFixture[str], policy: str, by: str
) -> None:
    """Set by hand, or fixed once: gateways answer as one does and count together, and the journal passes its audit."""
    shared: dict[str, Any] = {"gateway": {"store": redis.address(new_name(), lease=30, timeout=30)}, "policy": policy}
    (tmp_path / "gateway.toml").write_text(to_toml(settings(NOWHERE, **shared)))
    with Running(Reply("42"), **shared) as (one, _), Running(Reply("42"), **shared) as (other, _):
        for number in range(6):
            got = post((one, other)[number % 2].url, ASK)
            assert (got.status, got.headers["x-bpac-answered-by"]) == (200, by)
        for gateway in (one, other):
            wait_for(lambda gateway=gateway: (gateway.status()["steps"], gateway.status()["owed"]) == (6, 0))  # type: ignore[misc]
    assert main(["audit", str(tmp_path / "gateway.toml"), "--strict"]) == 0
    capsys.readouterr()


def test_the_verdict_on_a_switch_is_shared(
    redis: RedisServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every gateway folds the same evidence, and the command reads it from Redis."""
    options: dict[str, Any] = {
        "gateway": {"store": redis.address(new_name(), lease=0.5)}, "score": "none", "epsilon": 0.4
    }  # fmt: skip
    (tmp_path / "gateway.toml").write_text(to_toml(settings(NOWHERE, **options)))
    with Running(Reply("42"), **options) as (one, _), Running(Reply("42"), **options) as (other, _):
        for number in range(30):
            (one, other)[number % 2].client().chat.completions.create(**ASK)
        for gateway in (one, other):
            wait_for(lambda gateway=gateway: gateway.status()["switch"]["answer"] == "yes")  # type: ignore[misc]
        assert main(["switch", str(tmp_path / "gateway.toml"), "homework", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["answer"] == "yes"


def test_segments_have_games_of_their_own(redis: RedisServer) -> None:
    """The first request of a segment opens its game at every gateway; a reload goes on with the same games."""
    shared = {"store": redis.address(new_name(), lease=4, timeout=30)}
    with (
        Running(Reply("42"), gateway=shared, segment_by="header:x-tenant") as (one, _),
        Running(Reply("42"), gateway=shared, segment_by="header:x-tenant") as (other, _),
    ):
        for number in range(6):
            tenant = {"x-tenant": f"tenant {number % 3}"}
            client = (one, other)[number % 2].client()
            client.chat.completions.create(**ASK, extra_headers=tenant)
        for gateway in (one, other):
            wait_for(
                lambda gateway=gateway: (
                    sorted(  # type: ignore[misc]
                        (game["segment"], game["steps"])
                        for game in get_json(f"{gateway.url}/v1/status")["routes"]["homework"]
                    )
                    == [(f"tenant {number}", 2) for number in range(3)]
                )
            )


def test_missing_servers_are_one_line(tmp_path: Path) -> None:
    """A gateway whose Redis is not there does not start, and says which."""
    config = settings(NOWHERE, gateway={"store": "redis://127.0.0.1:1"})
    with pytest.raises(Exception, match=r"Redis at 127.0.0.1:1 cannot be used"):
        new_server(Config.read(config))


def test_commands_say_what_games_in_redis_cannot_do(
    redis: RedisServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Backups, warm starts and workers are for SQLite: each command says so in one line, and what to do instead."""
    config = tmp_path / "gateway.toml"
    config.write_text(to_toml(settings(NOWHERE, gateway={"store": redis.address(new_name())})))
    table = tmp_path / "table.csv"
    table.write_text("uncertainty,loss\n0.1,0\n")
    for words, remedy in (
        (["backup", str(config), "--out", str(tmp_path / "copy.db")], "append-only file"),
        (["warm", str(config), str(table)], "SQLite only"),
        (["serve", str(config), "--workers", "2"], "behind a load balancer"),
        (["export", str(config), "--out", str(tmp_path / "journal.jsonl")], "has used Redis"),
    ):
        assert main(words) in {1, 2}
        assert remedy in capsys.readouterr().err


def test_doctor_checks_redis(redis: RedisServer) -> None:
    """The store is fine if Redis answers; otherwise the remedy is said."""
    assert check_store(redis.address(new_name())).level == "ok"
    found = check_store("redis://127.0.0.1:1")
    assert (found.level, "check that the server runs" in found.remedy) == ("error", True)


def test_the_first_requests_of_a_segment_may_come_together(redis: RedisServer) -> None:
    """The game is joined once, whoever comes first; requests after a reload that opens another game are decided."""
    shared = {"store": redis.address(new_name(), lease=4, timeout=30)}
    with Running(Reply("42"), gateway=shared, segment_by="header:x-tenant") as (gateway, models):
        client = gateway.client()

        def ask(tenant: str) -> str:
            done = client.chat.completions.with_raw_response.create(**ASK, extra_headers={"x-tenant": tenant})
            return str(done.headers["x-bpac-decision"])

        with ThreadPoolExecutor(16) as pool:
            ids = list(pool.map(ask, ["new"] * 16))
        assert len(set(ids)) == 16
        assert "unscored" not in ids
        games: list[Any] = [*gateway.service.live_games()]
        (game,) = games
        wait_for(lambda: game.folder.replicas == 1 and game.router.step == 16)
        assert gateway.reload(settings(models.base_url, gateway=shared, segment_by="header:x-tenant", epsilon=0.3))
        assert ask("new") != "unscored"
