"""A replica in a process of its own, which folds a game until it is ended: for tests that stop or kill it."""

import asyncio
import sys

from bpac.routing.router import Router
from bpac.stores.redis.server.address import read_address
from bpac.stores.redis.store import RedisStore
from tests.stores.redis.shared_game import Seat


async def main(address: str, number: int, tickets: int) -> None:
    """Take part in a game, and keep some tickets without ever deciding them."""
    store = RedisStore(read_address(address))
    game = next(game for game in store.games() if game.number == number)
    seat = Seat(address, game, Router(0.2, 0.1).settings)
    await seat.sit_down()
    for _ in range(tickets):
        await seat.side.arrive()
    print("ready", flush=True)  # noqa: T201
    await asyncio.sleep(600)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
