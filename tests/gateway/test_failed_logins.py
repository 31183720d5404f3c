"""Wrong keys, tried again and again: slower and slower, in bounded memory, and at no cost to those with a right one."""

import asyncio
from typing import Any

import pytest

from bpac.gateway.auth.authentication import Authentication, shown_key
from bpac.gateway.auth.failed_logins import (
    COUNTED,
    FORGOTTEN,
    FREE,
    LONGEST,
    MOST_ACCEPTED,
    MOST_ADDRESSES,
    FailedLogins,
)
from bpac.gateway.auth.keys import ApiKeys, KeySettings, Role
from bpac.gateway.http.bad_request import BadRequest
from bpac.testing import Reply
from tests.dashboard.test_keys import sign_in
from tests.gateway.configured import OPERATOR, bearer
from tests.gateway.raw import post
from tests.gateway.running import ASK, Running, pair

ATTACKER, OTHER = "192.0.2.1", "198.51.100.7"


class Slept:
    """Stands in for the clock: how long was waited, and nobody waits."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seconds: list[float] = []
        monkeypatch.setattr("bpac.gateway.auth.authentication.asyncio.sleep", self)

    async def __call__(self, seconds: float) -> None:
        """Note it."""
        self.seconds.append(seconds)


def authentication() -> Authentication:
    """Of a gateway with two keys."""
    named = [KeySettings(name, f"{name}-key", frozenset({Role.CALL})) for name in ("one", "two")]
    return Authentication(ApiKeys([], named, b"secret"))


def scope(key: str, address: str) -> dict[str, Any]:
    """A request that shows a key."""
    return {"headers": [(b"authorization", f"Bearer {key}".encode())], "client": (address, 1234)}


async def tried(door: Authentication, key: str, address: str) -> bool:
    """Whether a key is let in."""
    try:
        await door.identity(scope(key, address))
    except BadRequest:
        return False
    return True


def test_guesses_get_slower(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first few cost nothing, each further one more, up to a second."""
    slept, door = Slept(monkeypatch), authentication()

    async def attack() -> None:
        for number in range(200):
            assert not await tried(door, f"guess-{number}", ATTACKER)

    asyncio.run(attack())
    assert len(slept.seconds) == 200 - int(FREE) - 1
    assert slept.seconds[0] < slept.seconds[5] < slept.seconds[-1] == LONGEST


def test_a_right_guess_is_told_no_sooner_than_a_wrong_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise giving up on slow answers would tell wrong keys at full speed."""
    slept, door = Slept(monkeypatch), authentication()

    async def attack() -> None:
        for number in range(200):
            await tried(door, f"guess-{number}", ATTACKER)
        assert await tried(door, "one-key", ATTACKER)

    asyncio.run(attack())
    assert slept.seconds[-1] == slept.seconds[-2] == LONGEST


def test_callers_who_share_an_address_with_an_attacker(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that was accepted there before goes on without waiting; a new one waits once, a second at most."""
    slept, door = Slept(monkeypatch), authentication()

    async def shared() -> None:
        assert await tried(door, "one-key", ATTACKER)
        for number in range(200):
            await tried(door, f"guess-{number}", ATTACKER)
        waits = len(slept.seconds)
        for _ in range(10):
            assert await tried(door, "one-key", ATTACKER)
        assert len(slept.seconds) == waits
        for _ in range(10):
            assert await tried(door, "two-key", ATTACKER)
        assert slept.seconds[waits:] == [LONGEST]
        assert await tried(door, "two-key", OTHER)
        assert len(slept.seconds) == waits + 1, "other addresses do not wait at all"

    asyncio.run(shared())


def test_many_addresses_fill_no_memory() -> None:
    """An attacker with a million addresses pushes the oldest out; right keys from many addresses do the same."""
    logins = FailedLogins()
    for number in range(3 * MOST_ADDRESSES):
        logins.failed(f"{number}", now=float(number))
        logins.accepted(f"{number}", b"digest")
        assert len(logins) <= MOST_ADDRESSES + MOST_ACCEPTED
    assert len(logins) == MOST_ADDRESSES + MOST_ACCEPTED


def test_one_network_is_one_attacker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Addresses of one IPv6 network have one owner."""
    slept, door = Slept(monkeypatch), authentication()

    async def attack() -> None:
        for number in range(100):
            await tried(door, "guess", f"2001:db8::{number:x}")

    asyncio.run(attack())
    assert slept.seconds[-1] == LONGEST


def test_failures_are_forgotten() -> None:
    """Ten minutes after the last wrong key an address has its fresh start, however many there were."""
    logins = FailedLogins()
    for _ in range(10_000):
        logins.failed(ATTACKER, now=0.0)
    assert logins.pause(ATTACKER, b"x", now=0.0) == LONGEST
    assert logins.pause(ATTACKER, b"x", now=COUNTED / FORGOTTEN) == 0.0


def test_no_key_is_no_guess(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who shows none, or not as a bearer, is turned away at once as often as they like."""
    slept, door = Slept(monkeypatch), authentication()

    async def ask() -> None:
        for shown in (b"", b"Basic abc", b"Bearer", b"Bearer  ") * 20:
            with pytest.raises(BadRequest):
                await door.identity({"headers": [(b"authorization", shown)], "client": (ATTACKER, 1)})
        with pytest.raises(BadRequest):
            await door.identity({"headers": [], "client": None})

    asyncio.run(ask())
    assert slept.seconds == []
    assert shown_key([(b"authorization", b"bearer  abc ")]) == b"abc"


def test_the_dashboards_form_counts_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wrong keys in it are counted with those in headers, for the address and for the operator; right ones get in."""
    monkeypatch.setattr("bpac.gateway.auth.failed_logins.STEP", 1e-6)
    keys = {"keys": [OPERATOR], "api_keys": ["right"]}
    with Running(pair(Reply("41"), Reply("42")), gateway=keys) as (gateway, _):
        for number in range(8):
            assert post(gateway.url, ASK, headers=bearer(f"guess-{number}")).status == 401
            assert sign_in(gateway, f"guess-{number}").status == 401
        assert gateway.service.refusals.counts == {"invalid_api_key": 16}
        assert sign_in(gateway, OPERATOR["key"]).status == 303
        assert post(gateway.url, ASK, headers=bearer("right")).status == 200
