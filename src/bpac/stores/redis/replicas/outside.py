"""Drafts that gateways served while Redis was gone, as they reported them when it was back.

A hash of each game has two kinds of fields. Under the name of its file stands how many drafts a gateway has served
outside the game so far. ``may:FILE`` names the replica that may serve such drafts; it is taken away when the gateway
leaves in order. A replica that is named there and lives no longer has not reported what it may have served.
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from bpac.stores.redis.keys import GameNames
from bpac.stores.redis.server.connecting import RedisClient, fields_of

MAY = b"may:"


class OutsideCounts(NamedTuple):
    """What is known of a game.

    Parameters
    ----------
    drafts: served outside it, each with a loss of at most 1.
    unreported: gateways that may have served more, and died.
    """

    drafts: int = 0
    unreported: int = 0


async def report(client: RedisClient, names: GameNames, file: str, drafts: int, replica: str) -> None:
    """Say how many drafts were served so far; again at any time, with a number that only grows.

    Parameters
    ----------
    client, names: the connections, and the keys of the game.
    file: the name of the file that counts them.
    drafts: so many.
    replica: that may serve more; empty if it leaves.
    """
    may = f"{MAY.decode()}{file}"
    await client.command("HSET", names.outside, file, drafts, *((may, replica) if replica else ()))
    if not replica:
        await client.command("HDEL", names.outside, may)


async def read_counts(client: RedisClient, names: GameNames) -> OutsideCounts:
    """What all gateways have reported."""
    found = fields_of(await client.command("HGETALL", names.outside))
    return counted(found, await client.command("HKEYS", names.replicas)) if found else OutsideCounts()


def counted(found: Mapping[bytes, bytes], living: Collection[bytes]) -> OutsideCounts:
    """What the hash says.

    Parameters
    ----------
    found: its fields.
    living: the replicas that take part in the game.

    >>> counted({b"1f": b"7", b"may:1f": b"a", b"2e": b"0", b"may:2e": b"b"}, [b"a"])
    OutsideCounts(drafts=7, unreported=1)
    """
    drafts = sum(int(count) for name, count in found.items() if not name.startswith(MAY))
    return OutsideCounts(drafts, sum(name.startswith(MAY) and value not in living for name, value in found.items()))
