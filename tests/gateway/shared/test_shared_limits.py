"""Budgets and rate limits of keys over several gateways: Redis counts them, by its own clock."""

import asyncio
import hashlib
import random
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from bpac.gateway.auth.keys import Identity, KeyLimits
from bpac.gateway.budgets.budgets import DAY, Budgets, Charge
from bpac.gateway.http.bad_request import BadRequest
from bpac.gateway.shared.shared_budgets import SharedBudgets, SharedCharge
from bpac.stores.redis.server import connecting
from bpac.stores.redis.server.address import read_address
from bpac.stores.redis.server.connecting import RedisClient
from bpac.stores.redis.server.scripts import Script, script
from bpac.testing import Reply
from tests.gateway.configured import get_json, wait_for
from tests.gateway.operations.asking import ask
from tests.gateway.operations.test_budgets import keys
from tests.gateway.running import Running, RunningGateway
from tests.redis_servers import RedisServer, redis_server
from tests.stores.redis.shared_game import new_name

START = 20_000 * DAY - 30  # shortly before midnight


class RedisClock:
    """What scripts take for the time of Redis, which a test sets."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = START
        monkeypatch.setattr(connecting, "script", self._script)

    def _script(self, name: str) -> Script:
        text = script(name).text.replace("redis.call('TIME')", f"({{{self.now}}})")
        return Script(text, hashlib.sha1(text.encode()).hexdigest())


def in_redis(server: RedisServer, work: Callable[[list[SharedBudgets]], Any], gateways: int = 2) -> None:
    """Have the budgets of some gateways do something."""

    async def run() -> None:
        address = read_address(server.address(new_name(), timeout=30))
        clients = [RedisClient(address) for _ in range(gateways)]
        try:
            await work([SharedBudgets(client, Budgets()) for client in clients])
        finally:
            for client in clients:
                await client.close()

    asyncio.run(run())


def team(**limits: int) -> Identity:
    """A caller with limits."""
    return Identity("team", "team", frozenset(), KeyLimits(**limits))


async def outcome(admitting: Any) -> tuple[Any, BadRequest | None]:
    """What was admitted, or the error."""
    try:
        return await admitting, None
    except BadRequest as error:
        return None, error


@pytest.mark.parametrize("what", ["requests", "tokens"])
def test_redis_counts_as_one_process_does(redis: RedisServer, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    """Whatever comes when, at either of two gateways: the same is refused, with the same error and the same wait."""
    clock, chance = RedisClock(monkeypatch), random.Random(5)
    most = {"requests": (80, 4), "tokens": (9000, 900)}[what]
    who = team(**{f"{what}_per_day": most[0], f"{what}_per_minute": most[1]})

    async def work(gateways: list[SharedBudgets]) -> None:
        alone, under_way = Budgets(lambda: float(clock.now)), list[tuple[SharedCharge, Charge]]()
        refusals = set[str]()
        for _ in range(300):
            clock.now += chance.choice((0, 0, 1, 3, 12, 70))
            if under_way and chance.random() < 0.4:
                pair = under_way.pop(chance.randrange(len(under_way)))
                tokens = chance.randrange(400) if chance.random() < 0.8 else None
                for charge in pair:
                    charge.refund() if tokens is None else charge.settle(tokens)
                await asyncio.gather(*(gateway.stop() for gateway in gateways))
                continue
            size = chance.randrange(1200)
            shared, error = await outcome(chance.choice(gateways).admit(who, size))
            local, expected = await outcome(asyncio.to_thread(alone.admit, who, size, float(clock.now)))
            assert str(error) == str(expected)
            if error is not None and expected is not None:
                assert (error.retry_after, error.headers) == (expected.retry_after, expected.headers)
                refusals.add(str(error).partition("; ")[0])
            else:
                used = shared.known.used
                assert (used.requests, used.tokens) == (local.used.requests, local.used.tokens)
                under_way.append((shared, local))
        assert len(refusals) == 2, refusals  # each limit was reached

    in_redis(redis, work)


def test_clocks_of_gateways_do_not_matter(redis: RedisServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """One whose clock is days ahead gets no second budget and no second minute."""
    now, ahead = time.time, 0.0
    monkeypatch.setattr(time, "time", lambda: now() + ahead)

    async def work(gateways: list[SharedBudgets]) -> None:
        nonlocal ahead
        for who in (team(requests_per_day=1), Identity("fast", "", frozenset(), KeyLimits(requests_per_minute=1))):
            ahead = 0.0
            assert await gateways[0].admit(who, 0) is not None
            ahead = 5.0 * DAY
            assert (await outcome(gateways[1].admit(who, 0)))[1] is not None

    in_redis(redis, work)


@pytest.mark.parametrize("back", [30, 40 * DAY])
def test_a_clock_of_redis_that_is_set_back(redis: RedisServer, monkeypatch: pytest.MonkeyPatch, back: int) -> None:
    """A little: nothing is granted twice. By weeks: limits begin anew, and nobody is locked out for weeks."""
    clock = RedisClock(monkeypatch)
    clock.now = 20_001 * DAY + 10
    who = team(requests_per_day=2, requests_per_minute=1)

    async def work(gateways: list[SharedBudgets]) -> None:
        assert await gateways[0].admit(who, 0) is not None
        clock.now -= back
        error = (await outcome(gateways[1].admit(who, 0)))[1]
        assert (error is not None) == (back < DAY)
        clock.now += 120
        assert await gateways[1].admit(who, 0) is not None
        clock.now += 120
        error = (await outcome(gateways[1].admit(who, 0)))[1]
        assert error is not None
        assert error.code == "insufficient_quota"

    in_redis(redis, work)


def test_what_a_key_uses_takes_bounded_room(redis: RedisServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two keys in Redis for each tenant, of which the one of the minute never has more than 61 fields, and both end."""
    clock = RedisClock(monkeypatch)
    who = team(requests_per_minute=1000)

    async def work(gateways: list[SharedBudgets]) -> None:
        (budgets,) = gateways
        for _ in range(150):
            clock.now += 1
            charge = await budgets.admit(who, 0)
            assert isinstance(charge, SharedCharge)
            used, minute = charge.keys
        client = budgets._client
        assert await client.command("HLEN", minute) == 61
        assert await client.command("HLEN", used) == 3
        assert [0 < await client.command("TTL", key) <= most for key, most in ((used, 2 * DAY), (minute, 120))] == [
            True, True
        ]  # fmt: skip

    in_redis(redis, work, gateways=1)


def test_rate_limits_hold_over_all_gateways(redis: RedisServer) -> None:
    """Of many requests at once at two gateways exactly as many are answered as the key may send; none is a round."""
    shared = {"store": redis.address(new_name(), timeout=30, lease=30), **keys(requests_per_minute=7)}
    with (
        Running(Reply("42"), gateway=shared) as (one, _),
        Running(Reply("42"), gateway=shared) as (other, _),
        ThreadPoolExecutor(8) as pool,
    ):
        urls = [one.url, other.url]
        replies = list(pool.map(lambda n: ask(urls[n % 2], "one"), range(24)))
        assert sorted(status for status, _, _ in replies) == [200] * 7 + [429] * 17
        refused = next(headers for status, headers, _ in replies if status == 429)
        assert refused["x-ratelimit-reset-requests"] == f"{refused['retry-after']}s"
        for gateway in (one, other):
            gateway.idle()
            wait_for(lambda gateway=gateway: _steps(gateway) == (7, 0))  # type: ignore[misc]


def _steps(gateway: RunningGateway) -> tuple[int, int]:
    (game,) = get_json(f"{gateway.url}/v1/status", "free")["routes"]["homework"]
    return game["steps"], game["owed"]


def test_without_redis_each_gateway_limits_by_itself(tmp_path: Path) -> None:
    """From what it knows: of the day what Redis said last, of the minute what it admitted itself."""
    with redis_server(tmp_path) as server:
        address = read_address(server.address(new_name(), timeout=2))

        async def run() -> None:
            client = RedisClient(address)
            one, other = (SharedBudgets(client, Budgets()) for _ in range(2))
            fast = team(requests_per_minute=3)
            poor = Identity("poor", "", frozenset(), KeyLimits(requests_per_day=3))
            for who in (fast, poor):
                assert isinstance(await one.admit(who, 0), SharedCharge)
                assert isinstance(await other.admit(who, 0), SharedCharge)
            server.kill()
            admitted = {
                (name, who.owner): [(await outcome(budgets.admit(who, 0)))[1] is None for _ in range(3)]
                for name, budgets in (("one", one), ("other", other))
                for who in (fast, poor)
            }
            assert admitted == {
                ("one", "team"): [True, True, False],
                ("other", "team"): [True, True, False],
                ("one", "poor"): [True, True, False],  # it was told of 1, before the other was admitted
                ("other", "poor"): [True, False, False],
            }
            await client.close()

        asyncio.run(run())
