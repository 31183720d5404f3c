"""Redis starts again and a replica dies or was paused: what it had written may be lost, and nobody overlooks it."""

from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest

from bpac.routing.router import Router
from bpac.stores.redis.server.address import read_address
from bpac.stores.redis.store import RedisStore
from bpac.stores.store import Game
from tests.redis_clusters import NODES, SLOTS, cluster_address, redis_cluster, wait_until_ok
from tests.redis_servers import redis_server
from tests.stores.redis.shared_game import PATIENT, SEATS, MovedClock, Seat, new_game, run_game
from tests.stores.redis.test_shared_faults import play, until

SETTINGS = Router(0.2, 0.1).settings
EVERY_SECOND = ("--appendonly", "yes", "--appendfsync", "everysec")
STARTED_AGAIN = "Redis started again, or another server took over"


class Table(NamedTuple):
    """A game with three replicas.

    Parameters
    ----------
    game: the game.
    first, other: seats that stay, each with a clock of its own; the first one folds.
    dies: a seat that is going to die.
    """

    game: Game
    first: tuple[Seat, MovedClock]
    other: tuple[Seat, MovedClock]
    dies: Seat


async def taken(address: str) -> Table:
    """A game that three replicas have played."""
    _, game = new_game(address)
    clocks = MovedClock(), MovedClock()
    seats = [Seat(address, game, SETTINGS, clock=clock) for clock in (*clocks, MovedClock())]
    for seat in seats:
        await seat.sit_down()
        await until(lambda: seats[0].folder.token == 1)
    for seat in seats:
        await play(seat, 20)
    return Table(game, (seats[0], clocks[0]), (seats[1], clocks[1]), seats[2])


async def die(seat: Seat) -> None:
    """End a replica as SIGKILL does: it leaves nothing and says nothing."""
    await seat.close()
    SEATS.remove(seat)


async def noticed(folding: tuple[Seat, MovedClock], caplog: pytest.LogCaptureFixture) -> None:
    """Wait until the replica that folds has noticed the restart; its lease ends if it was lost with the server."""
    await until(lambda: STARTED_AGAIN in caplog.text, folding[1])


async def judged(seat: Seat, clock: MovedClock, left: int) -> None:
    """Let a lease pass for the one that folds, until the game ends or so many replicas are left."""
    await until(lambda: seat.side.ended is not None or seat.folder.replicas == left, clock)


def test_the_next_folder_knows_who_has_not_called_since(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A folder that notices the restart and stops within a lease leaves the dead replica to the next, which ends it."""

    async def run() -> None:
        with redis_server(tmp_path, *EVERY_SECOND) as server:
            table = await taken(server.address("both", **PATIENT))
            await die(table.dies)
            server.kill()
            server.start()
            await noticed(table.first, caplog)
            await table.first[0].get_up()  # a clean stop, as in a rolling update
            other, clock = table.other
            await until(lambda: other.folder.token > 0)
            await judged(other, clock, left=1)
            assert "Redis started again and replica" in str(other.side.ended)
            await other.get_up()

    run_game(run)


def test_a_restart_that_everybody_has_seen_is_forgotten(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Once all replicas have called the server and found everything, one that dies ends nothing."""

    async def run() -> None:
        with redis_server(tmp_path, *EVERY_SECOND) as server:
            table = await taken(server.address("seen", **PATIENT))
            server.kill()
            server.start()
            await noticed(table.first, caplog)
            with closing(RedisStore(table.dies.client.address)) as store:
                key, run_id = store.of(table.game).state, store.client.command("INFO", "server")["run_id"]
                for _ in range(1000):
                    for seat in (table.first[0], table.other[0], table.dies):
                        await seat.side.sent()
                    table.first[1].move(PATIENT["lease"] / 3)  # it looks again
                    if store.client.command("HGET", key, "server").decode() == run_id:
                        break
                else:
                    raise AssertionError("nobody notes that all have called")
            await die(table.dies)
            await table.first[0].get_up()
            other, clock = table.other
            await until(lambda: other.folder.token > 0)
            await judged(other, clock, left=1)
            assert other.side.ended is None
            await other.get_up()

    run_game(run)


def removed(store: RedisStore, game: Game, replica: str) -> bytes:
    """Take a replica off a game, as a folder does that takes it for dead."""
    names, command = store.of(game), store.client.command
    keys = [names.state, names.inbox, names.open, names.replies, names.replicas]
    token, beat = command("HGET", names.state, "token"), command("HGET", names.replicas, replica)
    status: bytes = store.client.run("remove", keys, token, replica, beat)
    return status


@pytest.mark.parametrize("lost", [True, False], ids=["lost", "kept"])
def test_a_replica_that_was_taken_for_dead_finds_a_lost_tail(lost: bool, tmp_path: Path) -> None:
    """A paused replica compares what it was told with what the server had of it, before it joins again."""

    async def run() -> None:
        with redis_server(tmp_path) as server:
            address = server.address("paused", lease=30, timeout=2)
            store, game = new_game(address)
            seat = Seat(address, game, SETTINGS)
            await seat.sit_down()
            await play(seat, 40)
            store.client.command("SAVE")
            if lost:
                await play(seat, 40)
            await seat.stop_folding()
            if lost:
                server.kill()
                server.start()
            assert removed(store, game, seat.side.messages.replica) == b"ok"
            if lost:
                await until(lambda: seat.side.ended is not None or not seat.side._task)
                await play(seat, 20)
                assert "acknowledged" in str(seat.side.ended)
            else:
                before, name = seat.counts["decided"], seat.side.messages.replica
                again = Seat(address, game, SETTINGS)  # folds
                await again.sit_down()
                await play(seat, 20)
                assert (seat.side.ended, seat.counts["decided"]) == (None, before + 20)
                assert seat.side.messages.replica != name
                await again.get_up()
            await seat.get_up()

    run_game(run)


def test_a_node_of_a_cluster_starts_again_together_with_a_replica(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The restart of the node that a game is on is noticed as that of a single server is."""

    async def run() -> None:
        with redis_cluster(tmp_path, *EVERY_SECOND) as nodes:
            table = await taken(address := cluster_address(nodes, "node", **PATIENT))
            await die(table.dies)
            with closing(RedisStore(read_address(address))) as store:
                slot = store.client.client.keyslot(store.of(table.game).state)
            node = nodes[slot // (SLOTS // NODES + 1)]
            node.kill()
            node.start()
            wait_until_ok(nodes)
            await noticed(table.first, caplog)
            await judged(*table.first, left=1)
            assert "Redis started again and replica" in str(table.first[0].side.ended)
            for seat, _ in (table.first, table.other):
                await seat.get_up()

    run_game(run)
