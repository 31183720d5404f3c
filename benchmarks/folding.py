"""What a round costs the folder of a game in Redis: reading the inbox, deciding again, folding, chaining, publishing.

The folder is that of a gateway, with savings and history, on a real Redis server. A replica in the same process fills
the inbox while the folder rests; the time of the folder alone is counted.
"""

import argparse
import asyncio
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.redis_cost import redis
from bpac.gateway.shared.state import SharedRestoring
from bpac.replay.simulation.laws import PowerLaw
from bpac.routing.journal.entries import Opened
from bpac.routing.recorded_terms import DecisionRules, draft_scores
from bpac.routing.router import Router
from bpac.stores.redis.folding.folder import Folder
from bpac.stores.redis.messages import resolving
from bpac.stores.redis.replicas.replica import GameReplica
from bpac.stores.redis.server.address import read_address
from bpac.stores.redis.server.connecting import RedisClient
from bpac.stores.redis.store import RedisStore
from bpac.wire.usage import Usage

LAW = PowerLaw(most=0.5, power=1.5)
# Rounds that wait for the folder each time, as many at once as a busy gateway has.
AT_ONCE, EACH_TIME = 64, 512


def folding_cost(rounds: int = 10_240) -> float:
    """Microseconds of processor time of the folder per round."""
    with tempfile.TemporaryDirectory() as name, redis(Path(name)) as server:
        return asyncio.run(_measured(f"redis://127.0.0.1:{server.port}/0?name=folding&lease=60&timeout=60", rounds))


async def _measured(address: str, rounds: int) -> float:
    where, settings = read_address(address), Router(0.08).settings
    rules = DecisionRules.of(settings)
    store, client = RedisStore(where), RedisClient(where)
    game = store.open_game("m", "", "{}")
    names = store.of(game)
    opened = Opened(settings.to_json())
    folder = Folder(client, names, game, replica="", settings=opened, restoring=SharedRestoring(), lease=where.lease)
    side = GameReplica(client, names, rules, where.timeout, lambda found: setattr(folder, "replica", found))
    draws = zip(*(column.tolist() for column in LAW.draw(rounds, np.random.default_rng(1))), strict=True)
    draft, expert = Usage(90, completion=100).to_note("draft"), Usage(90, completion=140).to_note("expert")

    async def caller(count: int) -> None:
        for _ in range(count):
            uncertainty, loss = next(draws)
            ticket = await side.arrive()
            decision = await side.decide(ticket, draft_scores(rules, uncertainty, 0.0), {"at": time.time(), **draft})
            if decision is not None and decision.call_expert:
                side.tell(resolving(decision.step, loss, {"at": time.time(), **expert}))

    async def fold() -> float:
        began = time.process_time()
        while await folder.step():
            pass
        return time.process_time() - began

    await side.join()
    await fold()
    used, done = 0.0, 0
    while done + EACH_TIME <= rounds:
        await asyncio.gather(*(caller(EACH_TIME // AT_ONCE) for _ in range(AT_ONCE)))
        await side.sent()
        done += EACH_TIME
        used += await fold()
    if folder.folded != done:
        raise SystemExit(f"{folder.folded} of {done} rounds were folded")
    await side.leave()
    await client.close()
    store.close()
    return 1e6 * used / done


def main() -> None:
    """Measure, and print the figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10_240, help="rounds (default: 10240)")
    rounds = parser.parse_args().rounds
    print(f"the folder of a game: {folding_cost(rounds):.0f} µs of processor per round ({rounds:,} rounds)")


if __name__ == "__main__":
    main()
