"""A real cluster of three nodes, and a failover with a real Sentinel."""

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from bpac.routing.router import Router
from bpac.stores.redis.server.connecting import BlockingRedisClient
from bpac.stores.redis.store import RedisStore
from tests.redis_clusters import SLOTS, cluster_address, redis_cluster
from tests.redis_servers import RedisSentinel, RedisServer
from tests.stores.redis.shared_game import Seat, new_game, run_game, settled
from tests.stores.redis.test_shared_faults import checked, play, until
from tests.stores.redis.test_shared_games import rebuilt

SETTINGS = Router(0.2, 0.1).settings
# A copy is made without waiting for others that could be made at the same time.
AT_ONCE = ("--repl-diskless-sync-delay", "0")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[RedisServer]]:
    """A cluster of three nodes."""
    with redis_cluster(tmp_path_factory.mktemp("cluster")) as nodes:
        yield nodes


def test_games_spread_over_a_cluster(cluster: list[RedisServer]) -> None:
    """All keys of a game are on one node, several games are on several, and each passes its audit."""

    async def run() -> None:
        address = cluster_address(cluster, "spread", lease=30, timeout=30)
        nodes = set()
        for terms in ("1", "2", "3", "4", "5", "6"):
            store, game = new_game(address, terms)
            assert isinstance(store.client, BlockingRedisClient)
            nodes.add(store.client.client.keyslot(store.of(game).state) * 3 // SLOTS)
            seats = [Seat(address, game, SETTINGS) for _ in range(2)]
            for seat in seats:
                await seat.sit_down()
            await asyncio.gather(*(play(seat, 60) for seat in seats))
            for seat in seats:
                await seat.side.sent()
            await settled(store, game)
            for seat in seats:
                await seat.get_up()
            assert rebuilt(store, game).route.step == 120
            checked(store, game)
            store.close()
        assert len(nodes) > 1

    run_game(run)


def test_games_go_on_after_a_failover(tmp_path: Path) -> None:
    """Sentinel promotes a copy that has everything: the game goes on. What was under way is cut off."""

    async def run() -> None:
        with ExitStack() as stack:
            directories = [tmp_path / name for name in ("main", "copy", "sentinel")]
            for directory in directories:
                directory.mkdir()
            main = stack.enter_context(RedisServer(directories[0], *AT_ONCE))
            copies_main = (*AT_ONCE, "--replicaof", "127.0.0.1", str(main.port))
            copy = stack.enter_context(RedisServer(directories[1], *copies_main))
            await until(main.has_copy)
            sentinel = stack.enter_context(RedisSentinel(directories[2], main))
            await until(lambda: b"slaves=1" in sentinel.command("INFO sentinel"))
            address = f"redis+sentinel://127.0.0.1:{sentinel.port}/main?name=failover&lease=5&timeout=1&wait=1"
            store, game = new_game(address)
            seat = Seat(address, game, SETTINGS)
            await seat.sit_down()
            await play(seat, 100)
            before = seat.counts["decided"]
            assert before > 0
            # WAIT is satisfied again when the new main server has a copy.
            await asyncio.to_thread(sentinel.fail_over, main, copy, AT_ONCE)
            for _ in range(3000):
                await play(seat, 20)
                if seat.side.ended is not None or seat.counts["decided"] >= before + 100:
                    break
                await asyncio.sleep(0.02)  # requests end at once while Redis is gone
            assert seat.side.ended is None
            assert seat.counts["decided"] >= before + 100
            with closing(RedisStore(store.address)) as after:
                await settled(after, game)
                await seat.get_up()
                route = rebuilt(after, game).route
                asked = sum(seat.counts[kind] for kind in ("decided", "failed"))
                assert seat.counts["decided"] <= route.step <= asked
                checked(after, game)

    run_game(run)
