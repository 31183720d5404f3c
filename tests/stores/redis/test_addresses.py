"""Addresses of Redis servers."""

import pytest

from bpac.errors import SettingsError
from bpac.stores import open_store
from bpac.stores.redis.server.address import RedisAddress, is_redis, read_address
from bpac.stores.redis.server.connecting import RedisGone
from tests.ports import free_port

GOOD = {
    "redis://localhost": RedisAddress("single", (("localhost", 6379),)),
    "redis://h:7/2?name=a.b&lease=0.5&timeout=3&wait=1": RedisAddress(
        "single", (("h", 7),), database=2, name="a.b", lease=0.5, timeout=3.0, wait=1
    ),
    "rediss://u:p%40ss@[::1]:7?ca=/etc/ca.pem": RedisAddress(
        "single", (("::1", 7),), tls=True, username="u", password="p@ss", ca="/etc/ca.pem"
    ),
    "redis+sentinel://:secret@a,b:5/main/3": RedisAddress(
        "sentinel", (("a", 26379), ("b", 5)), service="main", database=3, password="secret"
    ),
    "redis+cluster://a:1,b:2,c": RedisAddress("cluster", (("a", 1), ("b", 2), ("c", 6379))),
    "rediss+cluster://a": RedisAddress("cluster", (("a", 6379),), tls=True),
}
BAD = {
    "redis://": "store must be redis://",
    "redis://h/x": "after the hosts",
    "redis://h/0/1": "after the hosts",
    "redis+cluster://h/1": "after the hosts",
    "redis+sentinel://h": "the name of the service",
    "redis://h:99999": "HOST:PORT",
    "redis://h h": "HOST:PORT",
    "redis://h?retry=1": "'retry'",
    "redis://h?lease=soon": "lease must be a number from 0.1 to 3600",
    "redis://h?wait=-1": "wait must be a number",
    "redis://h?name=a:b": "name must be",
    "redis+cluster://h?wait=1": "wait goes with one server",
    "redis://:env:NO_SUCH_VARIABLE@h": "NO_SUCH_VARIABLE",
}


@pytest.mark.parametrize("text", GOOD)
def test_addresses_are_understood(text: str) -> None:
    """Every form, with its parts and options."""
    assert is_redis(text)
    assert read_address(text) == GOOD[text]


@pytest.mark.parametrize("text", BAD)
def test_bad_addresses_get_one_line(text: str) -> None:
    """What is wrong is named, and what is right; never a password."""
    with pytest.raises(SettingsError, match=BAD[text]):
        read_address(text)


def test_passwords_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """A password may be the name of an environment variable; it is not shown."""
    monkeypatch.setenv("REDIS_PASSWORD", "hush")
    address = read_address("redis://:env:REDIS_PASSWORD@h")
    assert address.password == "hush"
    assert "hush" not in repr(address) + address.shown


def test_a_server_that_is_not_there_gets_one_line() -> None:
    """The message names the server and the remedy, not the password."""
    with pytest.raises(RedisGone, match=r"Redis at 127.0.0.1:\d+ cannot be used") as raised:
        open_store(f"redis://:hush@127.0.0.1:{free_port()}")
    assert "hush" not in str(raised.value)
    assert "check that the server runs" in raised.value.remedy
