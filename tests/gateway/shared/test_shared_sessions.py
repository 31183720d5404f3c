"""Sticky sessions with two gateways on one game in a real Redis server: an episode has one decision at both."""

import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from bpac.cli.program import main
from bpac.gateway.shared.shared_game import SharedGame
from bpac.testing import Reply, Request, ScriptedServer
from tests.gateway.configured import get_json, settings, wait_for
from tests.gateway.raw import Got, open_chat, post
from tests.gateway.running import ASK, RunningGateway, pair
from tests.gateway.serving import to_toml
from tests.gateway.shared.replicas import Replica
from tests.redis_servers import RedisServer, redis_server
from tests.stores.redis.shared_game import new_name

# After so many requests an episode is over.
MOST = 12
STICKY: dict[str, Any] = {"sticky_by": "header:x-session-id", "sticky_requests": MOST, "loss": "external"}
PLAIN = pair(Reply("41"), Reply("42"))


def two_routes(base_url: str, **gateway: Any) -> dict[str, Any]:
    """A route whose episodes are the expert's (``homework``), and one whose episodes are the draft's (``kept``)."""
    config = settings(base_url, gateway=gateway, **STICKY)
    config["routes"]["kept"] = {**config["routes"]["homework"], "policy": "never"}
    return config


class Pair:
    """Two gateways on one game, and their models.

    Parameters
    ----------
    gateways: both.
    models: the scripted models.
    config: the configuration of both, as a file.
    """

    def __init__(self, gateways: list[RunningGateway], models: ScriptedServer, config: Path) -> None:
        self.gateways = gateways
        self.models = models
        self.config = config

    def game(self, number: int, route: str = "homework") -> SharedGame:
        """The game of a route in one of them."""
        games: list[Any] = [*self.gateways[number].service.live_games()]
        return next(game for game in games if isinstance(game, SharedGame) and game.route.name == route)

    def status(self, number: int, route: str) -> dict[str, Any]:
        """The status of a game at one of them."""
        (game,) = get_json(f"{self.gateways[number].url}/v1/status")["routes"][route]
        assert isinstance(game, dict)
        return game

    def ask(self, number: int, session: str, route: str = "homework", **body: Any) -> Got:
        """A request of a session to one of them."""
        return ask(self.gateways[number].url, session, route, **body)

    def ran(self, number: int, work: Any) -> None:
        """Run something in the event loop of one of them, and wait for it."""
        done = threading.Event()
        for one in (work, done.set):
            self.gateways[number].loop.call_soon_threadsafe(one)
        assert done.wait(60.0)


def ask(url: str, session: str, route: str = "homework", **body: Any) -> Got:
    """A request of a session."""
    return post(url, {**ASK, "model": route, **body}, headers={"x-session-id": session})


def told(got: Got) -> tuple[str, str, str]:
    """What a response says: its decision, who answered, and what it is in its session."""
    return got.headers["x-bpac-decision"], got.headers["x-bpac-answered-by"], got.headers["x-bpac-session"]


def asked(models: ScriptedServer) -> Counter[str]:
    """How often each model was asked."""
    return Counter(request.body["model"] for request in models.requests)


@pytest.fixture(scope="module")
def both(redis: RedisServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Two gateways; afterwards the journals of both games pass their audit."""
    file = tmp_path_factory.mktemp("sessions") / "gateway.toml"
    with ScriptedServer(PLAIN) as models:
        config = two_routes(models.base_url, store=redis.address(new_name(), lease=30, timeout=30))
        file.write_text(to_toml(config))
        with RunningGateway(config) as one, RunningGateway(config) as other:
            yield Pair([one, other], models, file)
    for number in (1, 2):
        assert main(["audit", str(file), "--game", str(number), "--strict"]) == 0


@pytest.mark.parametrize(("route", "by"), [("homework", "expert"), ("kept", "draft")])
@pytest.mark.parametrize("stream", [False, True])
def test_later_requests_follow_at_any_gateway(both: Pair, route: str, by: str, stream: bool) -> None:
    """They have the decision of the first, to the bit; only its model is asked, and both gateways show one round."""
    session, before = f"follow {stream}", both.status(0, route)["steps"]
    first = both.ask(0, session, route, stream=stream)
    for gateway in both.gateways:
        gateway.idle()
    both.models.requests.clear()
    later = [both.ask(number % 2, session, route, stream=stream) for number in range(4)]
    assert told(first) == (first.headers["x-bpac-decision"], by, "first")
    assert {told(got) for got in later} == {(first.headers["x-bpac-decision"], by, "following")}
    for name in ("threshold", "propensity"):
        assert {got.headers[f"x-bpac-{name}"] for got in later} == {first.headers[f"x-bpac-{name}"]}
    assert all(got.status == 200 and (b"41" if by == "draft" else b"42") in got.body for got in later)
    assert asked(both.models) == {by: 4}
    for number in (0, 1):
        wait_for(lambda number=number: both.status(number, route)["steps"] == before + 1)  # type: ignore[misc]
        status = both.status(number, route)
        assert (status["unit"], status["sessions"]["sticky_by"]) == ("episode", "header:x-session-id")
        assert status["sessions"]["open"] >= 1
    # What later requests took is counted with the next entry that the gateway sends.

    def followed() -> int:
        return int(both.status(1, route)["savings"].get("followed", {}).get("requests", 0))

    counted = followed()
    for number in (0, 1):
        assert told(both.ask(number, f"{session}, counted at {number}", route))[2] == "first"
    wait_for(lambda: followed() == counted + 4)


def test_first_requests_at_two_gateways_at_once_are_one_decision(both: Pair) -> None:
    """One is decided, the others wait for it and follow, wherever they are; only one draft is made."""
    both.models.script = pair(Reply("41", delay=0.4), Reply("42"))
    both.models.requests.clear()
    before = both.status(0, "homework")["steps"]
    try:
        with ThreadPoolExecutor(10) as pool:
            got = list(pool.map(lambda number: both.ask(number % 2, "at once"), range(10)))
    finally:
        both.models.script = PLAIN
    assert Counter(told(one)[2] for one in got) == {"first": 1, "following": 9}
    assert len({told(one)[0] for one in got}) == 1
    assert asked(both.models)["draft"] == 1
    wait_for(lambda: both.status(0, "homework")["steps"] == before + 1)


def test_without_a_decision_the_next_request_begins_the_episode(both: Pair) -> None:
    """Also one that waits at the other gateway: the first has no score, or its caller leaves."""
    broken, slow = threading.Event(), threading.Event()

    def draft(_: Request) -> Reply:
        return Reply(status=500) if broken.is_set() else Reply("41", delay=20.0 if slow.is_set() else 0.0)

    both.models.script = pair(draft, Reply("42"))
    both.models.requests.clear()
    try:
        broken.set()
        assert told(both.ask(0, "unscored")) == ("unscored", "expert", "none")
        broken.clear()
        assert told(both.ask(1, "unscored"))[2] == "first"
        assert told(both.ask(0, "unscored"))[2] == "following"
        slow.set()
        both.models.requests.clear()
        leaving = open_chat(both.gateways[0].url, ASK, {"x-session-id": "leaves"})
        wait_for(lambda: asked(both.models)["draft"] == 1)
        slow.clear()
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(both.ask, 1, "leaves")
            leaving.close()
            assert told(waiting.result())[2] == "first"
    finally:
        both.models.script = PLAIN


def test_episodes_end_by_number_and_time_at_all_gateways(both: Pair) -> None:
    """After so many requests, or when its time is over on the clock of Redis, another round begins, exactly once."""
    got = [told(both.ask(number % 2, "long")) for number in range(MOST + 2)]
    assert [one[2] for one in got] == ["first", *["following"] * (MOST - 1), "first", "following"]
    assert len({one[0] for one in got}) == 2
    game = both.game(0)
    names = game.store.of(game.kept)
    (name,) = game.store.client.command("ZRANGE", names.named_ends, -1, -1)  # the one that was used last
    game.store.client.command("ZADD", names.named_ends, time.time() - 1.0, name)
    again = [told(both.ask(number % 2, "long")) for number in range(2)]
    assert [one[2] for one in again] == ["first", "following"]
    assert again[0][0] not in {one[0] for one in got}


def test_the_loss_of_an_episode_may_be_reported_at_any_gateway(both: Pair) -> None:
    """A request at the other gateway gives the reporter time again; after silence the round counts as a loss of 1."""
    for gateway in both.gateways:
        gateway.idle()
    first, silent = both.ask(0, "reported"), both.ask(0, "silent")
    game, names = both.game(0), both.game(0).store.of(both.game(0).kept)
    wait_for(lambda: len(game.desk._open) >= 2)
    steps = [int(got.headers["x-bpac-decision"].split("-")[2]) for got in (first, silent)]
    later = both.ask(1, "reported")
    assert told(later)[2] == "following"
    assert told(both.ask(1, "silent"))[2] == "following"
    passed = time.time() - 2 * game.route.deadline
    game.store.client.command("ZADD", names.followed, passed, steps[1])
    both.ran(0, lambda: game.desk.sweep(time.monotonic() + game.route.deadline + 1.0))
    wait_for(lambda: steps[1] not in game.desk._open)
    assert steps[0] in game.desk._open
    wait_for(lambda: both.status(1, "homework")["forfeits"].get("deadline", 0) >= 1)
    report = {"decision": told(later)[0], "loss": 0.0}
    wait_for(lambda: post(both.gateways[1].url, report, "/v1/feedback").status == 200)
    assert post(both.gateways[1].url, {**report, "decision": told(silent)[0]}, "/v1/feedback").status in (200, 409)


def test_sessions_beyond_the_limit_are_forgotten_and_counted(both: Pair) -> None:
    """The one that would end first begins another episode; both gateways say so."""
    games = [both.game(number, "kept") for number in (0, 1)]
    first = told(both.ask(0, "old", "kept"))
    try:
        for game in games:
            game.sessions.most = 1
        for number in range(8):  # each takes the place of one or two that would end first
            assert told(both.ask(1, f"new {number}", "kept"))[2] == "first"
    finally:
        for game in games:
            game.sessions.most = 100_000
    again = told(both.ask(0, "old", "kept"))
    assert (again[2], again[0] != first[0]) == ("first", True)
    for number in (0, 1):
        wait_for(lambda number=number: both.status(number, "kept")["sessions"]["forgotten"] >= 1)  # type: ignore[misc]
    page = post(both.gateways[0].url, b"", "/metrics", method="GET").body.decode()
    assert 'bpac_sessions_forgotten_total{route="kept",segment=""}' in page
    assert 'bpac_open_sessions{route="kept",segment=""}' in page


def test_crashes_and_an_outage_throw_no_second_coin(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A gateway dies before and after a decision, and Redis dies: what was decided is followed, what was not is not.

    While Redis is gone the expert answers, also in an episode of the draft's model.
    """
    slow: set[str] = set()

    def script(request: Request) -> Reply:
        name = request.body["model"]
        return Reply("41" if name == "draft" else "42", delay=60.0 if name in slow else 0.0)

    (tmp_path / "redis").mkdir()
    patient = {"lease": 6, "timeout": 5}
    with (
        redis_server(tmp_path / "redis", "--appendonly", "yes", "--appendfsync", "always") as server,
        ScriptedServer(script) as models,
        closing(Replica(tmp_path / "one", models.base_url, address := server.address("gone", **patient))) as one,
        closing(Replica(tmp_path / "two", models.base_url, address)) as two,
        ThreadPoolExecutor(2) as pool,
    ):
        for gateway in (one, two):
            config = two_routes(models.base_url, listen=f"127.0.0.1:{gateway.port}", store=address)
            gateway.config.write_text(to_toml(config))
            gateway.start()
        kept = told(ask(one.url, "kept", "kept"))
        assert kept[1:] == ("draft", "first")
        slow.add("expert")
        with open_chat(one.url, ASK, {"x-session-id": "decided"}):
            wait_for(lambda: asked(models)["expert"] == 1)  # so it was decided, and nothing of it was served
            slow.remove("expert")
            slow.add("draft")
            with open_chat(one.url, ASK, {"x-session-id": "drafting"}):
                wait_for(lambda: asked(models)["draft"] == 3)
                slow.clear()
                waiting = pool.submit(ask, two.url, "drafting")
                one.end(signal.SIGKILL)
                assert told(waiting.result())[1:] == ("expert", "first")  # once the dead gateway is found out
        decided = told(ask(two.url, "decided"))
        assert decided[1:] == ("expert", "following")
        assert told(ask(two.url, "kept", "kept")) == (kept[0], "draft", "following")
        wait_for(lambda: two.game()["steps"] == 2)
        server.kill()
        during = ask(two.url, "kept", "kept")
        assert (during.status, told(during)) == (200, ("unscored", "expert", "none"))
        assert (b"42" in during.body, during.headers["x-bpac-unscored"]) == (True, "store-down")
        server.start()
        wait_for(lambda: two.game()["shared"]["error"] is None)
        wait_for(lambda: told(ask(two.url, "kept", "kept"))[0] == kept[0])
        assert told(ask(two.url, "kept", "kept")) == (kept[0], "draft", "following")
        assert told(ask(two.url, "decided")) == decided
        one.start()
        assert told(ask(one.url, "decided")) == decided
        assert {gateway.game()["steps"] for gateway in (one, two)} == {2}
        for gateway in (one, two):
            assert gateway.end(signal.SIGTERM) == 0
        for number in (1, 2):
            assert main(["audit", str(one.config), "--game", str(number), "--strict"]) == 0
    capsys.readouterr()
