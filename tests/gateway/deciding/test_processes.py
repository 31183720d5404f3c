"""Rounds of callers across crashes, several processes, and several gateways on one game in Redis."""

import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from bpac.cli.program import main
from tests.gateway.configured import wait_for
from tests.gateway.deciding.own_route import Client, own
from tests.gateway.raw import Got
from tests.gateway.running import RunningGateway
from tests.gateway.serving import Process, to_toml
from tests.gateway.workers.crew import Crew
from tests.redis_servers import RedisServer
from tests.stores.redis.shared_game import new_name


def use_own_route(process: Process, **route: Any) -> None:
    """Replace the configuration of a gateway in a process of its own."""
    gateway = {"listen": f"127.0.0.1:{process.port}", "store": process.store}
    process.config.write_text(to_toml(own(gateway=gateway, **route)))


def test_a_crash_leaves_decisions_and_voids_tickets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A repeated decision is the one from before; a ticket from before keeps no draft; an audit passes."""
    key = {"Idempotency-Key": "seven"}
    with closing(Process(tmp_path, "http://127.0.0.1:9/v1")) as process:
        use_own_route(process, policy="portfolio")
        process.start()
        client = Client(process.url)
        decided, open_ticket = client.arrive(), client.arrive()
        first = client.decide(decided, 0.4)
        at_once = client.post("decide", key, route="own", uncertainty=0.4).json
        process.end(signal.SIGKILL)
        process.start()
        assert client.decide(decided, 0.0) == first
        assert client.post("decide", key, route="own", uncertainty=0.4).json == at_once
        other = client.post("decide", key, route="own", uncertainty=0.0)
        assert (other.status, other.json["error"]["code"]) == (422, "idempotency_key_reused")
        lost = client.decide(open_ticket, 0.0)
        assert (lost["decision"], lost["call_expert"], lost["serve_draft"]) == (None, True, False)
        assert client.report(first, 0.0).status == 200
        assert client.report(at_once, 1.0).status == 200
        assert client.decide(client.arrive())["step"] == 3
        assert client.game()["owed"] == 1
        assert process.end(signal.SIGTERM) == 0
        exported = tmp_path / "journal.jsonl"
        assert main(["export", str(process.config), "--out", str(exported)]) == 0
        assert main(["audit", str(exported)]) == 0
    capsys.readouterr()


def test_any_front_decides_any_ticket(tmp_path: Path) -> None:
    """The owner of the journals holds tickets: the death of a front costs nothing, that of the owner voids them."""
    with closing(Crew(tmp_path, "http://127.0.0.1:9/v1")) as crew:
        use_own_route(crew)
        crew.start()
        client = Client(crew.url)
        kept, lost = client.arrive(), client.arrive()
        crew.killed("front 0")
        reply = client.decide(kept)
        assert reply["decision"] is not None
        assert client.decide(kept, 0.0) == reply
        crew.killed("owner")
        wait_for(lambda: client.post("decide", ticket=lost, uncertainty=0.0).status == 200, 60.0)
        assert client.decide(lost, 0.0)["decision"] is None
        assert client.decide(kept, 0.0) == reply
        assert client.report(reply, 0.0).status == 200
        crew.end(signal.SIGTERM)


def test_gateways_that_share_a_game_decide_each_others_tickets(redis: RedisServer) -> None:
    """Behind a load balancer: every ticket has one coin, wherever it is decided, and no gateway runs out of tickets."""
    address = redis.address(new_name(), lease=30, timeout=30)
    gateway = {"store": address, "keys": [{"name": "all", "key": "all", "roles": ["call", "feedback", "operator"]}]}
    config = own(gateway=gateway, max_tickets=3)
    with RunningGateway(config) as one, RunningGateway(config) as two:
        here, there = Client(one, "all"), Client(two, "all")
        games: list[Any] = [*two.service.live_games()]
        games[0].side.messages.epoch = 0  # as in a gateway that has not heard of any ticket yet
        steps = []
        for arrived, decided in cycle([(here, there), (there, here)]):
            got = arrived.post("arrive", route="own")
            if got.status == 429:  # until it has read in the journal that the other one has decided
                wait_for(lambda client=arrived: client.status()["tickets"]["own"]["held"] == 0)  # type: ignore[misc]
                continue
            reply = decided.decide(got.json["ticket"], 0.5)
            steps.append(reply["step"])
            if len(steps) <= 2:
                assert arrived.decide(got.json["ticket"], 0.0) == reply
                assert arrived.refusal("withdraw", ticket=got.json["ticket"]) == (409, "already_decided")
            wait_for(lambda: arrived.report(reply, 0.0).status == 200)  # noqa: B023  # 503 until it is in the journal
            if len(steps) == 12:
                break
        assert steps == list(range(1, 13))
        wait_for(lambda: here.game()["steps"] == there.game()["steps"] == 12 and here.game()["owed"] == 0)
        assert here.status()["tickets"]["own"]["elsewhere"] >= 3
        assert here.refusal("decide", ticket="tic-1-" + "0" * 32 + "-" + "0" * 32 + ".WzFd", uncertainty=0.0) == (
            404,
            "unknown_ticket",
        )


def test_an_idempotency_key_is_known_to_all_gateways(redis: RedisServer) -> None:
    """One ticket and one coin, wherever requests with the key arrive, also at once; another draft is refused."""
    keys = [{"name": "all", "key": "all", "roles": ["call", "feedback", "operator"]}]
    config = own(gateway={"store": redis.address(new_name(), lease=30, timeout=30), "keys": keys})
    with RunningGateway(config) as one, RunningGateway(config) as two:
        clients = [Client(one, "all"), Client(two, "all")]

        def decide(number: int, key: str, uncertainty: float = 0.4) -> Got:
            return clients[number % 2].post("decide", {"Idempotency-Key": key}, route="own", uncertainty=uncertainty)

        arrived = [client.post("arrive", {"Idempotency-Key": "a"}, route="own").json["ticket"] for client in clients]
        assert arrived[0] == arrived[1]
        first = decide(1, "a")
        assert (first.status, first.json["ticket"], first.json["step"]) == (200, arrived[0], 1)
        assert [decide(number, "a").json for number in range(3)] == [first.json] * 3
        assert clients[0].decide(arrived[0], 0.0) == first.json
        for number in range(2):
            refused = decide(number, "a", 0.1)
            assert (refused.status, refused.json["error"]["code"]) == (422, "idempotency_key_reused")
            assert "uncertainty 0.4" in refused.json["error"]["message"]
        alone = decide(0, "alone")  # the other gateway learns of its ticket after the decision
        assert decide(1, "alone").json == alone.json
        with ThreadPoolExecutor(8) as pool:
            replies = [got.json for got in pool.map(lambda number: decide(number, "b"), range(8))]
        assert replies == [replies[0]] * 8
        assert replies[0]["step"] == 3
        # Two drafts under one key, at once: one is decided, and the other is told so.
        with ThreadPoolExecutor(2) as pool:
            got = list(pool.map(lambda number: decide(number, "c", number / 10), range(2)))
        assert sorted(one.status for one in got) == [200, 422]
        assert decide(0, "d").json["step"] == 5
