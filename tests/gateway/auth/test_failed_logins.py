"""Guessing keys gets slower and slower, in bounded memory, and callers with a right key notice nothing."""

import asyncio
from typing import Any

import pytest

from bpac.gateway.auth.authentication import Authentication, request_key
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
from bpac.gateway.config.secrets import ApiKey
from bpac.gateway.http.bad_request import BadRequest
from bpac.testing import Reply
from tests.dashboard.test_keys import sign_in
from tests.gateway.configured import OPERATOR, bearer
from tests.gateway.raw import post
from tests.gateway.running import ASK, Running, pair

ATTACKER, OTHER = "192.0.2.1", "198.51.100.7"


class Slept:
    """Replaces ``asyncio.sleep``: records the seconds, and does not wait."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seconds: list[float] = []
        monkeypatch.setattr("bpac.gateway.auth.authentication.asyncio.sleep", self)

    async def __call__(self, seconds: float) -> None:
        """Record the seconds."""
        self.seconds.append(seconds)


def two_keys() -> Authentication:
    """The authentication of a gateway with two keys."""
    named = [KeySettings(name, ApiKey(f"{name}-key"), frozenset({Role.CALL})) for name in ("one", "two")]
    return Authentication(ApiKeys([], named, b"secret"))


def scope(key: str, address: str) -> dict[str, Any]:
    """The scope of a request with a key."""
    return {"headers": [(b"authorization", f"Bearer {key}".encode())], "client": (address, 1234)}


async def accepted(authentication: Authentication, key: str, address: str) -> bool:
    """Whether a key is accepted."""
    try:
        await authentication.identity(scope(key, address))
    except BadRequest:
        return False
    return True


def test_replies_to_guesses_get_slower(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first few are not delayed, each further one is delayed longer, up to a second."""
    slept, authentication = Slept(monkeypatch), two_keys()

    async def attack() -> None:
        for number in range(200):
            assert not await accepted(authentication, f"guess-{number}", ATTACKER)

    asyncio.run(attack())
    assert len(slept.seconds) == 200 - int(FREE) - 1
    assert slept.seconds[0] < slept.seconds[5] < slept.seconds[-1] == LONGEST


def test_a_right_guess_is_delayed_as_long_as_a_wrong_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise an attacker could give up on slow replies and try keys at full speed."""
    slept, authentication = Slept(monkeypatch), two_keys()

    async def attack() -> None:
        for number in range(200):
            await accepted(authentication, f"guess-{number}", ATTACKER)
        assert await accepted(authentication, "one-key", ATTACKER)

    asyncio.run(attack())
    assert slept.seconds[-1] == slept.seconds[-2] == LONGEST


def test_callers_who_share_an_address_with_an_attacker_are_not_delayed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that was accepted from there before is not delayed; a new one is once, by at most a second."""
    slept, authentication = Slept(monkeypatch), two_keys()

    async def shared() -> None:
        assert await accepted(authentication, "one-key", ATTACKER)
        for number in range(200):
            await accepted(authentication, f"guess-{number}", ATTACKER)
        waits = len(slept.seconds)
        for _ in range(10):
            assert await accepted(authentication, "one-key", ATTACKER)
        assert len(slept.seconds) == waits
        for _ in range(10):
            assert await accepted(authentication, "two-key", ATTACKER)
        assert slept.seconds[waits:] == [LONGEST]
        assert await accepted(authentication, "two-key", OTHER)
        assert len(slept.seconds) == waits + 1, "other addresses are not delayed"

    asyncio.run(shared())


def test_many_addresses_do_not_fill_the_memory() -> None:
    """The oldest entries are removed, for wrong keys and for right keys from many addresses."""
    logins = FailedLogins()
    for number in range(3 * MOST_ADDRESSES):
        logins.failed(f"{number}", now=float(number))
        logins.accepted(f"{number}", b"digest")
        assert len(logins) <= MOST_ADDRESSES + MOST_ACCEPTED
    assert len(logins) == MOST_ADDRESSES + MOST_ACCEPTED


def test_addresses_of_one_ipv6_network_are_counted_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """A /64 network has one owner."""
    slept, authentication = Slept(monkeypatch), two_keys()

    async def attack() -> None:
        for number in range(100):
            await accepted(authentication, "guess", f"2001:db8::{number:x}")

    asyncio.run(attack())
    assert slept.seconds[-1] == LONGEST


def test_failures_are_forgotten_after_ten_minutes() -> None:
    """However many wrong keys there were."""
    logins = FailedLogins()
    for _ in range(10_000):
        logins.failed(ATTACKER, now=0.0)
    assert logins.pause(ATTACKER, b"x", now=0.0) == LONGEST
    assert logins.pause(ATTACKER, b"x", now=COUNTED / FORGOTTEN) == 0.0


def test_a_request_without_a_key_is_not_a_guess(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is rejected without a delay, as often as it comes, and so is another scheme than Bearer."""
    slept, authentication = Slept(monkeypatch), two_keys()

    async def ask() -> None:
        for value in (b"", b"Basic abc", b"Bearer", b"Bearer  ") * 20:
            with pytest.raises(BadRequest):
                await authentication.identity({"headers": [(b"authorization", value)], "client": (ATTACKER, 1)})
        with pytest.raises(BadRequest):
            await authentication.identity({"headers": [], "client": None})

    asyncio.run(ask())
    assert slept.seconds == []
    assert request_key([(b"authorization", b"bearer  abc ")]) == b"abc"


def test_wrong_keys_in_the_dashboards_form_are_counted_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Together with those in headers, for the delay and in the metrics; right keys are accepted."""
    monkeypatch.setattr("bpac.gateway.auth.failed_logins.STEP", 1e-6)
    keys = {"keys": [OPERATOR], "api_keys": ["right"]}
    with Running(pair(Reply("41"), Reply("42")), gateway=keys) as (gateway, _):
        for number in range(8):
            assert post(gateway.url, ASK, headers=bearer(f"guess-{number}")).status == 401
            assert sign_in(gateway, f"guess-{number}").status == 401
        assert gateway.service.rejections.counts == {"invalid_api_key": 16}
        assert sign_in(gateway, OPERATOR["key"]).status == 303
        assert post(gateway.url, ASK, headers=bearer("right")).status == 200
