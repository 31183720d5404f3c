"""What the gateway records and says of an outage of a real Redis server, although nobody looks at its status."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from bpac.errors import StoreError
from bpac.gateway.shared import shared_games
from bpac.gateway.shared.finding import FoundGame, find_game
from bpac.gateway.shared.outages.outages import BACK, RedisOutages
from bpac.gateway.telemetry.failures.store_failures import PROVED, StoreRecord
from bpac.gateway.telemetry.metrics.counters import Metrics
from bpac.stores.redis.server.address import read_address
from bpac.stores.redis.store import RedisStore
from bpac.stores.store import Game
from bpac.testing import Reply
from tests.gateway.configured import get_json, settings, wait_for
from tests.gateway.raw import post
from tests.gateway.running import ASK, Running, RunningGateway
from tests.redis_servers import RedisServer, redis_server
from tests.stores.redis.shared_game import new_name

KEEPS_ALL = ("--appendonly", "yes", "--appendfsync", "always")
LOST = "the journal lost entries: a new game begins with a threshold of 0"


def test_an_outage_lasts_from_the_first_to_the_last(caplog: pytest.LogCaptureFixture) -> None:
    """Games that lose Redis together are one failure, which is over when the last of them has it again."""
    record = StoreRecord(Metrics())
    outages = RedisOutages(record)
    for who in ("one", "other", "one"):
        outages.begin(who, StoreError("gone"))
    outages.end("one")
    outages.end("one")
    assert (record.failures, record.to_json()["ok"], caplog.text) == (1, False, "")
    outages.end("other")
    outages.end("nobody")
    assert (record.failures, record.to_json()["ok"], caplog.text.count(BACK)) == (1, True, 1)


def test_no_good_news_follows_a_loss(caplog: pytest.LogCaptureFixture) -> None:
    """If one of the games has lost entries, which the log has said, nothing says that all is well again."""
    record = StoreRecord(Metrics())
    outages = RedisOutages(record)
    for who in ("one", "other"):
        outages.begin(who, StoreError("gone"))
    outages.end("one", lost=True)
    outages.end("other")
    assert (record.to_json()["ok"], caplog.text) == (True, "")
    outages.begin("one", StoreError("gone"))
    outages.end("one")
    assert BACK in caplog.text


def failures(gateway: RunningGateway) -> int:
    """Failures of the store that were counted; nothing is asked or refreshed for it."""
    return gateway.service.store_record.failures


@pytest.mark.parametrize("lost", [False, True], ids=["kept", "lost"])
def test_an_outage_that_nobody_looks_at_is_recorded(
    lost: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Alerts depend on the count: it grows when Redis is gone. The log says no more than is known when it is back."""
    with (
        redis_server(tmp_path, *(() if lost else KEEPS_ALL)) as server,
        Running(Reply("42"), gateway={"store": server.address("seen", lease=4, timeout=0.5)}) as (gateway, _),
    ):
        wait_for(lambda: post(gateway.url, ASK).headers["x-bpac-decision"] != "unscored")
        server.kill()
        wait_for(lambda: failures(gateway) == 1)
        since = gateway.service.store_record.to_json()["since"]
        assert since is not None
        server.start()
        wait_for(lambda: gateway.service.store_record.failure is None)
        if lost:
            wait_for(lambda: LOST in caplog.text)
        wait_for(lambda: post(gateway.url, ASK).headers["x-bpac-decision"] != "unscored")
        assert get_json(f"{gateway.url}/v1/status")["store"]["ok"] is True
        assert failures(gateway) == 1
        assert "bpac_store_failures_total 1.0" in gateway.service.measurements()
    assert PROVED not in caplog.text
    assert (BACK in caplog.text) == (not lost)


def test_a_reload_does_not_hold_up_requests(redis: RedisServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the list of games does not come, requests are answered under the old configuration."""
    asked, answers = threading.Event(), threading.Event()
    answers.set()
    games: Callable[[RedisStore], list[Game]] = RedisStore.games

    def slow(store: RedisStore) -> list[Game]:
        if not answers.is_set():
            asked.set()
            assert answers.wait(60.0)
        return games(store)

    monkeypatch.setattr(RedisStore, "games", slow)
    shared: dict[str, Any] = {"gateway": {"store": redis.address(new_name(), lease=4, timeout=30)}}
    with Running(Reply("42"), **shared) as (gateway, models), ThreadPoolExecutor(1) as pool:
        wait_for(lambda: post(gateway.url, ASK).headers["x-bpac-decision"] != "unscored")
        answers.clear()
        reload = pool.submit(gateway.reload, settings(models.base_url, **shared, epsilon=0.3))
        try:
            assert asked.wait(60.0)
            for _ in range(3):
                assert post(gateway.url, ASK).headers["x-bpac-decision"] != "unscored"
            assert not reload.done()
        finally:
            answers.set()
        assert reload.result(60.0)
        wait_for(lambda: gateway.status()["epsilon"] == 0.3)


def test_a_new_game_begins_whatever_went_wrong_first(
    redis: RedisServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A game ends because a key was replaced, and its successor is found at the second attempt only."""
    attempts, address = [], redis.address(new_name(), lease=4)

    def found_later(*arguments: Any) -> FoundGame:
        attempts.append(1)
        if len(attempts) == 1:
            raise ValueError("nobody has thought of this")
        return find_game(*arguments)

    with Running(Reply("42"), gateway={"store": address}) as (gateway, _):
        wait_for(lambda: post(gateway.url, ASK).headers["x-bpac-decision"] != "unscored")
        monkeypatch.setattr(shared_games, "find_game", found_later)
        with closing(RedisStore(read_address(address))) as store:
            (game,) = store.games()
            store.client.command("SET", store.of(game).inbox, "planted")
        wait_for(lambda: "no new game can begin yet" in caplog.text)
        wait_for(lambda: gateway.status()["game"] > game.number)
        wait_for(lambda: post(gateway.url, ASK).headers["x-bpac-decision"] != "unscored")
        wait_for(lambda: get_json(f"{gateway.url}/v1/status")["store"]["ok"])
        gateway.idle()
    assert len(attempts) == 2
