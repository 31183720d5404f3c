"""First requests of new segments while a real Redis server is gone: the expert answers, and nobody waits for them."""

import asyncio
import signal
from collections import Counter
from collections.abc import Iterable
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import NamedTuple

import aiohttp
import pytest

from bpac.cli.program import main
from bpac.errors import StoreError
from bpac.gateway.chat.request import ChatRequest
from bpac.gateway.config.file import Config
from bpac.gateway.games.rounds.decision_ids import read_decision_id
from bpac.gateway.games.segment_names import Caller
from bpac.gateway.shared.finding import find_game
from bpac.gateway.shared.shared_games import AllSharedGames, SharedGames
from bpac.gateway.telemetry.metrics.counters import Metrics
from bpac.routing.decision import Decision
from bpac.stores import open_store
from bpac.stores.redis.server.address import read_address
from bpac.stores.redis.store import RedisStore
from bpac.testing import ScriptedServer
from tests.gateway.configured import get_json, settings, wait_for
from tests.gateway.deciding.own_route import own
from tests.gateway.law import KnownPair, Question, Seen
from tests.gateway.shared.replicas import Replica
from tests.redis_servers import RedisServer, redis_server
from tests.stores.redis.shared_game import new_name

NUMBERS = count()
METRIC = 'bpac_without_store_total{route="homework"}'


class Place(NamedTuple):
    """What a test needs.

    Parameters
    ----------
    server: Redis.
    gateway: the gateway.
    seen: all answers, with their segments.
    """

    server: RedisServer
    gateway: Replica
    seen: list[tuple[str, Seen]]

    async def ask(self, session: aiohttp.ClientSession, segment: str) -> Seen:
        """Ask a question in a segment; it must be answered with status 200."""
        question = Question(next(NUMBERS))
        body = {**question.body, "model": f"homework:{segment}"}
        async with session.post(f"{self.gateway.url}/v1/chat/completions", json=body) as response:
            found = await response.json()
            assert response.status == 200, found
            headers = {name.lower(): value for name, value in response.headers.items()}
        answer = Seen(question, headers, found["choices"][0]["message"]["content"])
        self.seen.append((segment, answer))
        return answer

    def ask_at_once(self, segments: Iterable[str]) -> list[Seen]:
        """Ask a question in each of these segments, all at once."""

        async def run() -> list[Seen]:
            async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
                return await asyncio.gather(*(self.ask(session, segment) for segment in segments))

        return asyncio.run(run())

    def decides(self, segment: str) -> bool:
        """Whether a request of a segment is decided."""
        return not is_outside(self.ask_at_once([segment])[0])

    def store_status(self) -> dict[str, object]:
        """What the status says about the store."""
        found = get_json(f"{self.gateway.url}/v1/status")["store"]
        assert isinstance(found, dict)
        return found

    def counted(self) -> int:
        """Requests that were answered without the store, by the metric."""
        (line,) = [line for line in self.gateway.metrics().splitlines() if line.startswith(METRIC)]
        return int(float(line.rpartition(" ")[2]))


def is_outside(answer: Seen) -> bool:
    """Whether an answer is the expert's, without a decision, because Redis was gone."""
    if answer.headers["x-bpac-decision"] != "unscored":
        return False
    assert answer.headers["x-bpac-unscored"] in ("store-down", "outage")
    assert (answer.headers["x-bpac-answered-by"], answer.text) == ("expert", "right")
    return True


def redis_is_killed(place: Place) -> None:
    """First requests are answered by the expert and counted, as those of a known segment are; then their games open."""
    wait_for(lambda: place.decides("known"))
    before = place.counted()
    place.server.kill()
    new = [f"new-{number}" for number in range(4)]
    during = place.ask_at_once([*new, "known", *new, "known", *new])
    assert all(map(is_outside, during))
    assert place.counted() - before == sum(one.headers["x-bpac-unscored"] == "store-down" for one in during)
    status = place.store_status()
    assert (status["ok"], status["failures"] != 0) == (False, True)
    assert "cannot be used" in str(status["cause"])
    assert "goes on by itself" in str(status["remedy"])
    assert "a game cannot be opened: the expert answers requests of new segments" in place.gateway.log_lines()
    games = get_json(f"{place.gateway.url}/v1/status")["routes"]["homework"]
    assert [game["segment"] for game in games] == ["known"]
    place.server.start()
    for segment in [*new, "known"]:
        wait_for(lambda segment=segment: place.decides(segment))  # type: ignore[misc]
    assert "games can be opened again" in place.gateway.log_lines()
    wait_for(lambda: place.store_status()["ok"] is True)


def redis_hangs(place: Place) -> None:
    """Redis hangs: the event loop goes on, and a request without a game is answered when it has waited long enough."""
    wait_for(lambda: place.decides("known"))

    async def run() -> None:
        url = place.gateway.url
        async with aiohttp.ClientSession() as session:
            pending = asyncio.create_task(place.ask(session, "hanging"))
            for _ in range(5):
                async with session.get(f"{url}/healthz") as response:
                    assert response.status == 200
            # If opening a game held up the event loop, it would have to end before anything else is answered.
            assert not pending.done()
            assert is_outside(await pending)

    assert place.server.process is not None
    place.server.process.send_signal(signal.SIGSTOP)
    try:
        asyncio.run(run())
        assert place.store_status()["ok"] is False
    finally:
        place.server.process.send_signal(signal.SIGCONT)
    for segment in ("hanging", "known"):
        wait_for(lambda segment=segment: place.decides(segment))  # type: ignore[misc]


def nothing_is_counted_twice(place: Place) -> None:
    """After both outages: each answer with a decision is one round of the game of its segment."""
    limited = [f"limited-{number}" for number in range(5)]
    for segment in limited:  # two of them find room
        wait_for(lambda segment=segment: place.decides(segment))  # type: ignore[misc]
    assert place.gateway.end(signal.SIGTERM) == 0
    with closing(open_store(place.gateway.store, read_only=True)) as store:
        games = store.games()
        segments = [game.segment for game in games]
        assert len(segments) == len(set(segments)) <= 8
        assert "*" in segments
        assert store.losses() == []
        rounds = {
            (game.number, kept.entry.step)
            for game in games
            for kept in store.entries(game)
            if isinstance(kept.entry, Decision)
        }
        named = Counter(
            read_decision_id(answer.headers["x-bpac-decision"], store)
            for _, answer in place.seen
            if not is_outside(answer)
        )
        by_number = {game.number: game.segment for game in games}
        for segment, answer in place.seen:
            found = read_decision_id(answer.headers["x-bpac-decision"], store)
            assert found is None or by_number[found[0]] == (segment if segment in segments else "*")
    assert set(named.values()) == {1}
    # A decision that Redis made and whose reply was lost is a round that nobody was served.
    assert named.keys() <= rounds


def a_game_is_half_written(place: Place) -> None:
    """A script failed in its middle while no gateway was left to notice: the game ends, and log and metrics say it."""
    with closing(RedisStore(read_address(place.gateway.store))) as store:
        (game,) = (game for game in store.games() if game.segment == "known")
        store.client.command("HSET", store.of(game).state, "writing", 1)
    place.gateway.start()
    wait_for(lambda: place.decides("known"))
    with closing(open_store(place.gateway.store, read_only=True)) as store:
        assert [lost.game for lost in store.losses()] == [game.number]
        assert sum(one.segment == "known" for one in store.games()) == 2
    assert f'bpac_journal_losses_total{{game="{game.number}"}} 1.0' in place.gateway.metrics()
    assert "the journal lost entries: a new game begins with a threshold of 0" in place.gateway.log_lines()
    assert place.gateway.end(signal.SIGTERM) == 0


def test_first_requests_of_new_segments_while_redis_is_gone(tmp_path: Path) -> None:
    """Redis is killed, and hangs: requests get the expert's answer, nothing waits, nothing is counted twice."""
    (tmp_path / "redis").mkdir()
    with (
        redis_server(tmp_path / "redis", "--appendonly", "yes", "--appendfsync", "always") as server,
        ScriptedServer(KnownPair()) as models,
        closing(
            Replica(
                tmp_path / "one", models.base_url, server.address("segments", lease=3, timeout=4),
                segment_by="model", most_segments=8,
            )
        ) as gateway,
    ):  # fmt: skip
        gateway.start()
        place = Place(server, gateway, [])
        redis_is_killed(place)
        redis_hangs(place)
        nothing_is_counted_twice(place)
        a_game_is_half_written(place)


def test_two_gateways_do_not_open_more_games_than_there_may_be(redis: RedisServer) -> None:
    """Segments are limited at all gateways together: if they share alpha, one game more would break the promise."""
    options = {"segment_by": "model", "most_segments": 4, "alpha_scope": "all"}
    route = Config.read(settings("http://127.0.0.1:9/v1", **options)).routes["homework"]
    address = read_address(redis.address(new_name()))
    with closing(RedisStore(address)) as one, closing(RedisStore(address)) as two:
        found = [
            find_game(store, route, f"{name}{number}", 0.025).kept
            for number in range(4)
            for store, name in ((one, "a"), (two, "b"))
        ]
        assert [game.segment for game in found] == ["a0", "b0", "a1", *["*"] * 5]
        assert len({game.number for game in found}) == 4


def test_callers_who_ask_their_models_themselves_get_an_error(tmp_path: Path) -> None:
    """A route that decides only has no expert to answer: the caller is told at once, and its next attempt succeeds."""
    route = Config.read(own(segment_by="model")).decide_routes["own"]

    async def run(server: RedisServer, games: AllSharedGames) -> None:
        of_route = SharedGames(games, route, 100)
        server.kill()
        for _ in range(2):
            with pytest.raises(StoreError, match="cannot be used"):
                await of_route.desk(ChatRequest({}, "own"), Caller(), "new")
        server.start()
        while games.opening.failure is not None:
            await asyncio.sleep(0.01)
        assert (await of_route.desk(ChatRequest({}, "own"), Caller(), "new")).segment == "new"
        await games.stop()

    with (
        redis_server(tmp_path, "--appendonly", "yes", "--appendfsync", "always") as server,
        closing(RedisStore(read_address(server.address("own", timeout=5)))) as store,
    ):
        asyncio.run(run(server, AllSharedGames(store, Metrics())))


def test_a_gateway_does_not_start_without_redis(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong address must not become a gateway that asks the expert for everything: one line says it, exit code 1."""
    server = RedisServer(tmp_path)
    with closing(Replica(tmp_path, "http://127.0.0.1:9/v1", server.address("absent", timeout=1))) as gateway:
        assert main(["serve", str(gateway.config)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert f"Redis at 127.0.0.1:{server.port} cannot be used" in line
    assert "check that the server runs, that it can be reached from here, and that the address is right" in line
