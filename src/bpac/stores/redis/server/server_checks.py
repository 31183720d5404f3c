"""Whether a Redis server can keep games: its version, and what it does when its memory is full."""

from collections.abc import Sequence
from typing import Any

from bpac.errors import StoreError
from bpac.stores.redis.server.connecting import BlockingRedisClient

# Scripts number events with ``XADD … 0-*``, which older servers refuse. Valkey calls itself Redis 7.2 or later.
LEAST = (7, 0)


def check_server(client: BlockingRedisClient) -> None:
    """Raise ``StoreError`` if a server cannot keep games; nothing is changed. ``RedisGone`` if none answers."""
    where = client.address.shown
    check_version(where, client.reports("server"))
    check_eviction(where, client.reports("memory"))


def check_version(where: str, reports: Sequence[dict[str, Any]]) -> None:
    """Raise ``StoreError`` if a server is too old for the scripts.

    Parameters
    ----------
    where: the address, for the message.
    reports: what ``INFO server`` says of each.
    """
    for report in reports:
        version = str(report.get("redis_version", ""))
        if _parts(version) < LEAST:
            what = f"Redis at {where} is too old (version {version or 'unknown'})"
            remedy = "games need Redis 7.0 or later, or Valkey: upgrade the server, or give the address of another one"
            raise StoreError(f"{what}; {remedy}", cause=what, remedy=remedy)


def _parts(version: str) -> tuple[int, ...]:
    """The numbers of a version.

    >>> _parts("7.0.15"), _parts("255.255.255"), _parts("unstable")
    ((7, 0, 15), (255, 255, 255), ())
    """
    parts = version.split(".")
    return tuple(map(int, parts)) if all(part.isdecimal() for part in parts) else ()


def check_eviction(where: str, reports: Sequence[dict[str, Any]]) -> None:
    """Raise ``StoreError`` if a server may drop keys of games when its memory is full.

    Parameters
    ----------
    where: the address, for the message.
    reports: what ``INFO memory`` says of each.
    """
    # Other policies drop keys that expire, and no key of a game does.
    found = {str(one.get("maxmemory_policy", "")) for one in reports}
    if bad := sorted(policy for policy in found if policy.startswith("allkeys")):
        what = f"Redis at {where} drops keys when its memory is full (maxmemory-policy {bad[0]})"
        remedy = "set  maxmemory-policy noeviction : a journal that lost entries proves nothing"
        raise StoreError(f"{what}; {remedy}", cause=what, remedy=remedy)
