"""A replica that cannot reach Redis for a while, and comes back: bytes are swallowed, connections stay open."""

import asyncio
from types import TracebackType

from bpac.routing.recorded_terms import RecordedScores
from bpac.routing.router import Router
from tests.redis_servers import RedisServer
from tests.stores.redis.shared_game import Seat, new_game, new_name, run_game, settled
from tests.stores.redis.test_shared_faults import checked, play, until
from tests.stores.redis.test_shared_games import rebuilt

SETTINGS = Router(0.2, 0.1).settings


class Proxy:
    """Passes bytes on to a server, or swallows them."""

    def __init__(self, port: int) -> None:
        self._to = port
        self.passes = True

    async def __aenter__(self) -> "Proxy":
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port: int = self._server.sockets[0].getsockname()[1]
        self._tasks: list[asyncio.Task[None]] = []
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        to_reader, to_writer = await asyncio.open_connection("127.0.0.1", self._to)
        for one, other in ((reader, to_writer), (to_reader, writer)):
            self._tasks.append(asyncio.create_task(self._pass(one, other)))

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(1 << 16):
                if self.passes:
                    writer.write(data)
                    await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()


def test_a_partition_of_the_folder(redis: RedisServer) -> None:
    """Another replica folds; the one that was cut off serves nothing meanwhile, and goes on when it is back."""

    async def run() -> None:
        name = new_name()
        address, far_away = (redis.address(name, lease=2, timeout=timeout) for timeout in (30, 1))
        store, game = new_game(address)
        async with Proxy(redis.port) as proxy:
            there = far_away.replace(f":{redis.port}/", f":{proxy.port}/")
            far, near = Seat(there, game, SETTINGS), Seat(address, game, SETTINGS)
            await far.sit_down()
            await until(lambda: far.folder.token > 0)
            await near.sit_down()
            for times in range(3):
                await asyncio.gather(play(far, 40), play(near, 40))
                mine = await far.side.arrive()
                proxy.passes = False
                busy = asyncio.create_task(play(far, 60))
                await until(lambda: near.folder.token > 0 and near.folder.replicas == 1)
                await play(near, 40)
                await busy
                assert far.side.down is not None, times
                proxy.passes = True
                await until(lambda: far.side.down is None)
                assert await far.side.decide(mine, RecordedScores((0.2,)), {}) is None  # it was cut off
                await near.folder.release()
                await until(lambda: far.folder.token > 0 or near.folder.token > 0)
                if not far.folder.token:
                    break  # whoever folds now: the next partition would not be one of the folder
            await asyncio.gather(play(far, 40), play(near, 40))
            for seat in (far, near):
                await seat.side.sent()
            await settled(store, game)
            for seat in (far, near):
                await seat.stop_folding()
            route = rebuilt(store, game).route
            known = sum(seat.counts["decided"] for seat in (far, near))
            assert known <= route.step <= known + far.counts["failed"]
            assert far.counts["failed"] > 0
            assert (far.lost, near.lost, near.counts["failed"]) == (None, None, 0)
            checked(store, game)
            for seat in (far, near):
                await seat.get_up()

    run_game(run)
