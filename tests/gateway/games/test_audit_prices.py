"""Audits are placed where the expert is cheap or idle, and a new game knows how much traffic its route has."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bpac.errors import SettingsError
from bpac.gateway.config.file import Config
from bpac.gateway.games.money.audit_prices import expected_now
from bpac.routing.audit.audit import audit_journal
from bpac.routing.journal.entries import Expected
from bpac.stores import open_store
from bpac.stores.export import journal_lines
from bpac.testing import Reply, Request, ScriptedServer
from tests.gateway.configured import settings, wait_for
from tests.gateway.law import KnownPair, Question
from tests.gateway.raw import post
from tests.gateway.running import ASK, Running, RunningGateway, pair


def expectations(address: str) -> list[Expected]:
    """What the journal of the latest game says was expected."""
    store = open_store(address)
    try:
        entries = [stored.entry for stored in store.entries(store.games()[-1])]
        lines = list(journal_lines(store, store.games()[-1]))
    finally:
        store.close()
    assert audit_journal(lines).differences == []
    return [entry for entry in entries if isinstance(entry, Expected)]


def test_audits_are_at_their_least_rate_while_the_expert_is_busy(tmp_path: Path) -> None:
    """From ``busy_at`` calls under way on, until they are fewer; status, metrics and journal say so."""
    address, gate = f"sqlite:///{tmp_path / 'bpac.db'}", threading.Event()

    def slow(request: Request) -> Reply:
        if "wait" in request.body["messages"][0]["content"]:
            assert gate.wait(60.0)
        return Reply("42")

    waiting = {**ASK, "messages": [{"role": "user", "content": "wait"}]}
    with ScriptedServer(pair(Reply("42"), slow)) as models, ThreadPoolExecutor(2) as pool:
        config = settings(models.base_url, gateway={"store": address}, busy_at=2)
        with RunningGateway(config) as gateway:
            post(gateway.url, ASK)
            assert gateway.status()["exploration_rate"] == 0.9
            held = [pool.submit(post, gateway.url, waiting) for _ in range(2)]
            wait_for(lambda: sum(request.body["model"] == "expert" for request in models.requests) == 3)
            post(gateway.url, ASK)
            status = gateway.status()
            assert (status["expert_busy"], status["exploration_rate"]) == (True, 0.05)
            assert (
                b'bpac_expert_busy{route="homework",segment=""} 1.0'
                in post(gateway.url, None, "/metrics", method="GET").body
            )
            gate.set()
            assert [future.result().status for future in held] == [200, 200]
            gateway.idle()
            post(gateway.url, ASK)
            assert (gateway.status()["expert_busy"], gateway.status()["exploration_rate"]) == (False, 0.9)
    assert expectations(address) == [Expected(busy=True), Expected()]


def test_the_price_follows_the_hours_until_the_setting_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is no term of the promise: the same game goes on with it and without it."""
    clock = [3600.0]
    monkeypatch.setattr("bpac.gateway.games.live_game.time", SimpleNamespace(time=lambda: clock[0]))
    address = f"sqlite:///{tmp_path / 'bpac.db'}"
    with ScriptedServer(KnownPair()) as models:
        plain = settings(models.base_url, gateway={"store": address})
        cheap = settings(models.base_url, gateway={"store": address}, cheap_hours=["00:00-12:00"], cheap_price=0.25)
        with RunningGateway(cheap) as gateway:
            for number in range(5):
                post(gateway.url, Question(number).body)
            gateway.idle()
            before = gateway.status()
            assert before["audit_price"] == 0.4
        with RunningGateway(cheap) as gateway:
            assert gateway.status() == before
            clock[0] += 12 * 3600.0
            post(gateway.url, Question(6).body)
            assert gateway.status()["audit_price"] == 1.6
            assert gateway.reload(plain)
            post(gateway.url, Question(7).body)
            after = gateway.status()
        assert (after["audit_price"], after["game"], after["steps"]) == (1.0, before["game"], 7)
    assert expectations(address) == [Expected(audit_price=0.4), Expected(audit_price=1.6), Expected()]


def test_prices_are_relative_to_the_average_of_the_day() -> None:
    """What an audit gains is saved at all hours; hours that overlap are counted once."""
    some = settings("http://localhost:1/v1", cheap_hours=["18:00-02:00", "20:00-00:00"], cheap_price=0.25)
    route = Config.read(some).routes["homework"]
    assert route.mean_price == pytest.approx(0.75)
    found = [expected_now(route, Expected(), 3600.0 * hour, 0).audit_price for hour in (1, 2, 17, 18, 23)]
    assert found == pytest.approx([1 / 3, 4 / 3, 4 / 3, 1 / 3, 1 / 3])


def test_a_busy_expert_stays_busy_until_its_load_has_clearly_fallen() -> None:
    """A load that goes up and down near the limit does not change the rate with every request."""
    route = Config.read(settings("http://localhost:1/v1", busy_at=8)).routes["homework"]
    before = Expected(rounds=500)
    seen = []
    for calls in (0, 7, 8, 7, 6, 5, 7, 8):
        before = expected_now(route, before, 0.0, calls)
        seen.append(before.busy)
    assert seen == [False, False, True, True, True, False, False, True]
    assert before.rounds == 500


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"cheap_hours": ["25:00-06:00"]}, "hours in UTC"),
        ({"cheap_hours": ["06:00-06:00"]}, "two different times"),
        ({"cheap_hours": [6]}, "hours in UTC"),
        ({"cheap_price": 0.0}, "cheap_price"),
        ({"cheap_price": 1.5}, "cheap_price"),
        ({"busy_at": 0}, "busy_at"),
    ],
)
def test_mistakes_in_these_settings_are_named(wrong: dict[str, Any], message: str) -> None:
    """With the path of the setting."""
    with pytest.raises(SettingsError, match=message) as raised:
        Config.read(settings("http://localhost:1/v1", **wrong))
    assert f"routes.homework.{next(iter(wrong))}" in str(raised.value)


def test_a_new_game_expects_the_traffic_of_the_one_before(tmp_path: Path) -> None:
    """After a change of terms, as many rounds as the longest earlier game of the route had; a first game, none."""
    address = f"sqlite:///{tmp_path / 'bpac.db'}"
    with ScriptedServer(KnownPair()) as models:
        for epsilon, expected, rounds in ((0.2, 0, 7), (0.3, 7, 2), (0.4, 7, 1), (0.2, 0, 1)):
            config = settings(models.base_url, gateway={"store": address}, epsilon=epsilon)
            with RunningGateway(config) as gateway:
                for number in range(rounds):
                    post(gateway.url, Question(number).body)
                gateway.idle()
                assert gateway.status()["expected_rounds"] == expected
            with RunningGateway(config) as gateway:
                assert gateway.status()["expected_rounds"] == expected


def test_by_default_nothing_is_expected() -> None:
    """Journals of gateways without these settings are as before."""
    with Running(pair(Reply("42"), Reply("42"))) as (gateway, _):
        post(gateway.url, ASK)
        gateway.idle()
        store = gateway.service.store
        assert not [entry for entry, _ in store.entries(store.games()[0]) if isinstance(entry, Expected)]
