"""Two gateways on one route, with their game in a real Redis server."""

import asyncio
import re
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import chain, count, takewhile
from pathlib import Path

import pytest

from bpac.cli.program import main
from bpac.routing.router import Router
from bpac.stores import open_store
from bpac.stores.redis.store import RedisStore
from bpac.testing import ScriptedServer
from tests.gateway.configured import get_json, wait_for
from tests.gateway.law import KnownPair, Question, Seen, crowd
from tests.gateway.served import journal_at, steps_served
from tests.gateway.shared.replicas import Replica
from tests.redis_servers import RedisServer, redis_server
from tests.stores.redis.shared_game import new_name


def all_folded(address: str, *gateways: Replica) -> bool:
    """Whether everything that happened is in the journal, and every audit has its outcome."""
    with closing(open_store(address, read_only=True)) as store:
        (game,) = store.games()
        assert isinstance(store, RedisStore)
        names = store.of(game)
        last = store.client.command("XREVRANGE", names.inbox, "+", "-", "COUNT", 1)
        folded = store.client.command("HGET", names.state, "folded") == last[0][0]
    return folded and all(gateway.game()["owed"] == 0 for gateway in gateways)


def pictures_agree(gateways: list[Replica]) -> bool:
    """Whether all gateways show all of them, as many rounds, and the same folder."""
    found = [gateway.game() for gateway in gateways]
    pictures = {(game["steps"], game["shared"]["folder"], game["shared"]["replicas"]) for game in found}
    return len(pictures) == 1 and found[0]["shared"]["replicas"] == len(gateways)


def shows_speed(gateway: Replica) -> bool:
    """Whether the dashboard shows both gateways, and how fast the journal grows."""
    replicas = get_json(f"{gateway.url}/dashboard/data")["replicas"]  # none until each has heard of the other
    return bool(replicas and replicas["entries_per_second"])


@contextmanager
def load(gateways: list[Replica], seen: dict[str, list[Seen]], at_once: int = 12) -> Iterator[None]:
    """Requests to all gateways at once, as long as the block lasts."""
    stop, numbers = threading.Event(), count()

    def ask(gateway: Replica) -> None:
        questions = map(Question, takewhile(lambda _: not stop.is_set(), numbers))
        asyncio.run(crowd(gateway.url, questions, at_once, seen.setdefault(gateway.url, [])))

    threads = [threading.Thread(target=ask, args=(gateway,)) for gateway in gateways]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_two_gateways_share_one_game(redis: RedisServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Under load, and with the folder killed: one picture, every answer in the journal, and an audit that passes."""
    address, seen = redis.address(new_name(), lease=3, timeout=30), dict[str, list[Seen]]()
    with (
        ScriptedServer(KnownPair(delay=0.002, delay_of_loss=0.02)) as models,
        closing(Replica(tmp_path / "one", models.base_url, address)) as one,
        closing(Replica(tmp_path / "two", models.base_url, address)) as two,
    ):
        gateways = [one, two]
        for gateway in gateways:
            gateway.start()
        wait_for(lambda: sum(gateway.game()["shared"]["folding"] for gateway in gateways) == 1)
        with load(gateways, seen):
            wait_for(lambda: all(len(answers) > 150 for answers in seen.values()) and len(seen) == 2)
            wait_for(lambda: all(map(shows_speed, gateways)))
        wait_for(lambda: all_folded(address, *gateways))
        wait_for(lambda: pictures_agree(gateways))
        first, second = (gateway.game() for gateway in gateways)
        scored = sum(answer.headers["x-bpac-decision"] != "unscored" for found in seen.values() for answer in found)
        assert first["steps"] == second["steps"] == scored
        assert (first["threshold"], first["certificate"]) == (second["threshold"], second["certificate"])
        assert first["shared"]["folder"] == second["shared"]["folder"] != ""
        assert first["shared"]["replicas"] == second["shared"]["replicas"] == 2
        shown = [get_json(f"{gateway.url}/dashboard/data") for gateway in gateways]
        assert sorted(one["replicas"]["folding"] for one in shown) == [0, 1]
        assert [(one["replicas"]["replicas"], one["replicas"]["lag"]) for one in shown] == [(2, 0), (2, 0)]
        metrics = [gateway.metrics() for gateway in gateways]
        assert sorted("bpac_folding{" + page.split("bpac_folding{")[1].split("\n")[0] for page in metrics) == [
            'bpac_folding{route="homework",segment=""} 0.0', 'bpac_folding{route="homework",segment=""} 1.0',
        ]  # fmt: skip
        assert first["shared"]["folder"].startswith(socket.gethostname())
        entries = {
            page.split('bpac_journal_entries_total{route="homework",segment=""} ')[1].split()[0] for page in metrics
        }
        assert {float(one) for one in entries} == {float(len(journal_at(address)))}
        assert len(steps_served(address, chain.from_iterable(seen.values()))) > 100
        folder, other = gateways if first["shared"]["folding"] else gateways[::-1]
        with load([other], seen):
            before = len(seen[other.url])
            folder.end(signal.SIGKILL)
            wait_for(lambda: other.game()["shared"]["folding"])
            wait_for(lambda: other.game()["shared"]["replicas"] == 1 and len(seen[other.url]) > before + 100)
        wait_for(lambda: all_folded(address, other))
        reported = other.game()
        assert other.end(signal.SIGTERM) == 0
    assert len(steps_served(address, chain.from_iterable(seen.values()))) > 100
    router = Router.rebuild(journal_at(address))
    assert (router.step, router.threshold) == (reported["steps"], reported["threshold"])
    exported = tmp_path / "journal.jsonl"
    assert main(["export", str(other.config), "--out", str(exported)]) == 0
    assert main(["audit", str(exported), "--strict"]) == 0
    capsys.readouterr()
    assert main(["status", str(other.config)]) == 0
    printed = capsys.readouterr().out
    assert "gateways that share it: 0, folded by none; rounds not in the journal yet: 0" in printed
    assert re.search(r"journal: [\d,]+ entries; the latest came at [\d,]+\.\d per second", printed)


def test_the_expert_answers_while_redis_is_gone(tmp_path: Path) -> None:
    """SIGKILL of Redis under load: every request is answered by the expert, and routing goes on when it is back."""
    seen = dict[str, list[Seen]]()
    (tmp_path / "redis").mkdir()
    with (
        redis_server(tmp_path / "redis", "--appendonly", "yes", "--appendfsync", "always") as server,
        ScriptedServer(KnownPair(delay=0.002)) as models,
        closing(Replica(tmp_path / "one", models.base_url, server.address("gone", lease=3, timeout=2))) as gateway,
    ):
        gateway.start()
        with load([gateway], seen):
            wait_for(lambda: len(seen.get(gateway.url, ())) > 100)
            server.kill()
            wait_for(lambda: gateway.game()["shared"]["error"] is not None)
            assert gateway.game()["steps"] > 50  # what was read last is shown
            before = len(seen[gateway.url])
            wait_for(lambda: len(seen[gateway.url]) > before + 100)
            gone = seen[gateway.url][before:]
            server.start()
            wait_for(lambda: gateway.game()["shared"]["error"] is None)
            after = len(seen[gateway.url])
            wait_for(
                lambda: any(one.headers["x-bpac-decision"] != "unscored" for one in seen[gateway.url][after:]), 10.0
            )
            wait_for(lambda: len(seen[gateway.url]) > after + 100)
        assert {one.headers.get("x-bpac-unscored") for one in gone} <= {"store-down", "outage", None}
        assert not any(one.kept for one in gone[20:])
        wait_for(lambda: all_folded(gateway.store, gateway))
        assert "bpac_store_failures_total 1.0" in gateway.metrics()
        assert "Redis is gone" in gateway.log_lines()
        address = gateway.store
        assert len(steps_served(address, chain.from_iterable(seen.values()))) > 100
        assert gateway.end(signal.SIGTERM) == 0


def test_a_lost_tail_begins_a_new_game(tmp_path: Path) -> None:
    """Redis without a file comes back empty: a new game begins at a threshold of 0, and the log and status say so."""
    seen = dict[str, list[Seen]]()
    with (
        redis_server(tmp_path) as server,
        ScriptedServer(KnownPair(delay=0.002)) as models,
        closing(Replica(tmp_path / "one", models.base_url, server.address("tail", lease=3, timeout=2))) as gateway,
    ):
        gateway.start()
        with load([gateway], seen):
            wait_for(lambda: len(seen.get(gateway.url, ())) > 100)
            server.kill()
            server.start()
            wait_for(lambda: "a new game begins" in gateway.log_lines())
            before = len(seen[gateway.url])
            wait_for(
                lambda: sum(one.headers["x-bpac-decision"] != "unscored" for one in seen[gateway.url][before:]) > 50
            )
        assert gateway.game()["steps"] < len(seen[gateway.url])
        assert 'bpac_journal_losses_total{game="1"} 1.0' in gateway.metrics()
        assert gateway.end(signal.SIGTERM) == 0


def test_archives_are_cut_from_a_running_game(redis: RedisServer, tmp_path: Path) -> None:
    """Old entries move to Parquet while a gateway runs; archives and the rest pass one audit, and a restart goes on."""
    address, seen = redis.address(new_name(), lease=3, timeout=30), dict[str, list[Seen]]()
    archives, rest = tmp_path / "archives", tmp_path / "rest.jsonl"
    archives.mkdir()
    with (
        ScriptedServer(KnownPair()) as models,
        closing(Replica(tmp_path / "one", models.base_url, address)) as gateway,
    ):
        gateway.start()
        for _ in range(2):
            with load([gateway], seen):
                before = len(seen.get(gateway.url, ()))
                wait_for(lambda before=before: len(seen.get(gateway.url, ())) > before + 350)  # type: ignore[misc]
                assert main(["archive", str(gateway.config), "--out", str(archives), "--keep", "10"]) == 0
        wait_for(lambda: all_folded(address, gateway))
        assert gateway.end(signal.SIGTERM) == 0
        steps = journal_length(address)
        gateway.start()  # from the snapshot: the entries before it are gone
        assert gateway.game()["steps"] == sum(one.headers["x-bpac-decision"] != "unscored" for one in seen[gateway.url])
        assert gateway.end(signal.SIGTERM) == 0
    files = sorted(archives.glob("game-1-*.parquet"), key=lambda file: int(file.name.split("-")[3]))
    assert len(files) == 2
    assert main(["export", str(gateway.config), "--out", str(rest)]) == 0
    assert len(rest.read_text().splitlines()) < steps
    assert main(["audit", *map(str, files), str(rest), "--strict"]) == 0
    assert main(["audit", str(files[1]), str(rest)]) == 1


def journal_length(address: str) -> int:
    """How many entries the one game has had."""
    with closing(open_store(address, read_only=True)) as store:
        (game,) = store.games()
        archived = store.archived(game)
        assert archived is not None
        return archived.entries + sum(1 for _ in store.links(game))
