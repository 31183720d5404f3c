"""A cascade that two gateways share through a real Redis server."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

from bpac.cli.program import main
from bpac.routing.cascade.router import CascadeRouter
from bpac.stores import open_store
from bpac.testing import ScriptedServer
from tests.gateway.chat.test_cascade import MODELS, ask, cascade, scripted
from tests.gateway.configured import wait_for
from tests.gateway.running import RunningGateway
from tests.gateway.serving import to_toml
from tests.redis_servers import RedisServer, redis_server
from tests.stores.redis.shared_game import new_name

REQUESTS = 300


def test_two_gateways_share_a_cascade(redis: RedisServer, tmp_path: Path) -> None:
    """Each model answers what it is sure of; both gateways show one picture, the journal leads to it and is audited."""
    store: dict[str, Any] = {"store": redis.address(new_name(), lease=0.5), "snapshot_every": 100}
    with (
        ScriptedServer(scripted) as models,
        RunningGateway(cascade(models.base_url, gateway=store, epsilon=0.06)) as one,
        RunningGateway(cascade(models.base_url, gateway=store, epsilon=0.06)) as other,
        ThreadPoolExecutor(6) as pool,
    ):
        gateways = (one, other)

        def asked(number: int) -> Any:
            return ask(gateways[number % 2], number, stream=number % 5 == 0)

        replies = list(pool.map(asked, range(REQUESTS)))
        assert {got.status for got in replies} == {200}
        for gateway in gateways:
            gateway.idle()
            wait_for(lambda gateway=gateway: (gateway.status()["steps"], gateway.status()["owed"]) == (REQUESTS, 0))  # type: ignore[misc]
        first, second = (gateway.status() for gateway in gateways)
        assert (first["threshold"], first["stages"]) == (second["threshold"], second["stages"])
        stages = Counter(int(got.headers["x-bpac-stage"]) for got in replies)
        assert [stage["model"] for stage in first["stages"]] == list(MODELS)
        assert [stage["answered"] for stage in first["stages"]] == [stages[stage] for stage in (1, 2, 3)]
        assert stages[3] < REQUESTS
        # Audits that ask all models did so: a rule could be fitted to them, and is used by both gateways.
        with closing(open_store(store["store"], read_only=True)) as journals:
            (game,) = journals.games()
            entries = [stored.entry for stored in journals.entries(game)]
        router = CascadeRouter.rebuild(entries)
        assert (router.step, router.threshold) == (REQUESTS, first["threshold"])
        assert router.bettor.joined_rules
        assert sum(request.body["model"] == "expert" for request in models.requests) == router.asked[3]
    config, exported = tmp_path / "gateway.toml", tmp_path / "journal.jsonl"
    config.write_text(to_toml(cascade(models.base_url, gateway=store, epsilon=0.06)))
    assert main(["export", str(config), "--out", str(exported)]) == 0
    assert main(["audit", str(exported), "--strict"]) == 0


def test_the_last_model_answers_while_redis_is_gone(tmp_path: Path) -> None:
    """Without tickets no request is a round: callers get the answers of the last model, marked, and nothing fails."""
    with (
        redis_server(tmp_path) as server,
        ScriptedServer(scripted) as models,
        RunningGateway(
            cascade(models.base_url, gateway={"store": server.address("gone", lease=0.5, timeout=0.2)})
        ) as gateway,
    ):
        assert ask(gateway, 1).headers["x-bpac-decision"] != "unscored"
        server.kill()
        gone = [ask(gateway, number) for number in (2, 3)]
    assert [(got.status, got.headers.get("x-bpac-unscored")) for got in gone] == [(200, "store-down")] * 2
