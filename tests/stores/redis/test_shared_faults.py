"""What goes wrong around a shared game: nothing is counted twice, and no served round is left out."""

import asyncio
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from bpac.errors import StoreError
from bpac.routing.audit.audit import audit_journal
from bpac.routing.journal.entries import Started
from bpac.routing.journal.snapshot import take_snapshot
from bpac.routing.recorded_terms import RecordedScores
from bpac.routing.router import Router
from bpac.stores.export import journal_lines
from bpac.stores.redis.messages import BatchReply, ReplicaMessages, arriving, deciding, resolving, withdrawing
from bpac.stores.redis.store import RedisStore
from bpac.stores.store import Game
from tests.redis_servers import RedisServer, redis_server
from tests.routing.learning.drafts import Draft
from tests.stores.redis.shared_game import PATIENT, MovedClock, Seat, new_game, new_name, run_game, settled
from tests.stores.redis.test_shared_games import rebuilt

SETTINGS = Router(0.2, 0.1).settings


def contents(store: RedisStore, game: Game) -> dict[str, Any]:
    """Everything that Redis has of a game."""
    names = store.of(game)
    client = store.client
    return {
        "state": client.command("HGETALL", names.state),
        "journal": client.command("XRANGE", names.journal, "-", "+"),
        "inbox": client.command("XRANGE", names.inbox, "-", "+"),
        "open": client.command("HGETALL", names.open),
    }


def checked(store: RedisStore, game: Game) -> None:
    """The journal passes an audit."""
    audit = audit_journal(line + "\n" for line in journal_lines(store, game))
    assert audit.differences == []


def token(seat: Seat) -> int:
    """The token that a replica believes to have."""
    return seat.folder.token


async def play(seat: Seat, count: int, loss: float = 0.0) -> None:
    """Requests one after the other and some at once."""
    dice = random.Random(3)
    rows = [Draft(dice.random(), (), loss) for _ in range(count)]
    for start in range(0, count, 20):
        await asyncio.gather(*(seat.play(row, lambda _: 0.0, row.loss) for row in rows[start : start + 20]))


async def play_until_one_fails(seat: Seat) -> None:
    """Requests as long as there is an answer."""
    before = seat.counts["failed"]
    while seat.counts["failed"] == before:
        await play(seat, 20)


async def until(condition: Any, clock: MovedClock | None = None) -> None:
    """Wait for something to happen.

    Parameters
    ----------
    condition: whether it has happened.
    clock: one on which leases pass while this waits (default: none, so that nobody counts as dead).
    """
    for _ in range(6000):
        if condition():
            return
        if clock is not None:
            clock.move(PATIENT["lease"] / 2)
        await asyncio.sleep(0.01)
    raise AssertionError("it did not happen")


@contextmanager
def folding_process(address: str, game: Game, tickets: int = 0) -> Iterator[subprocess.Popen[str]]:
    """A replica in a process of its own."""
    here = Path(__file__).parents[3]
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.stores.redis.folding_process", address, str(game.number), str(tickets)],
        stdout=subprocess.PIPE, text=True, cwd=here, env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )  # fmt: skip
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def test_a_batch_that_is_sent_again_changes_nothing(redis: RedisServer) -> None:
    """A repeated script returns what it returned the first time, and leaves everything as it is."""

    async def run() -> None:
        address = redis.address(new_name(), **PATIENT)
        store, game = new_game(address)
        seat = Seat(address, game, SETTINGS)
        await seat.sit_down()
        await play(seat, 40)
        await seat.side.sent()  # nothing of its own is on its way any more
        await settled(store, game)
        await seat.stop_folding()
        messages, client = seat.side.messages, seat.client
        for count in range(3):
            arrivals = messages.batch([arriving(3)], f"first {count}")
            first = await client.run("batch", messages.keys, *arrivals)
            before = contents(store, game)
            assert await client.run("batch", messages.keys, *arrivals) == first
            assert contents(store, game) == before
            number = messages.read(first).results[0]
            one, two, three = (messages.ticket(number + at) for at in range(3))
            operations = [
                deciding(one, RecordedScores((0.3,)), {}), withdrawing(two, "test", 1.0),
                deciding(three, RecordedScores((0.4,)), {}), resolving(1, 1.0, {}),
            ]  # fmt: skip
            decisions = messages.batch(operations, f"second {count}")
            first = await client.run("batch", messages.keys, *decisions)
            before = contents(store, game)
            assert await client.run("batch", messages.keys, *decisions) == first
            # One that was to take its place after an outage learns that it had taken effect.
            status, body = await client.run("batch", messages.keys, *messages.batch([("c",)], "another"))
            assert (status, body) == (b"earlier", first[1])
            assert contents(store, game) == before
            assert messages.read(first).results[0] == 41 + 2 * count
            # A copy of an old batch that was delayed on its way does nothing.
            assert (await client.run("batch", messages.keys, *arrivals))[0] == b"old"
            assert contents(store, game) == before

    run_game(run)


def test_a_folder_that_was_stopped_publishes_nothing(redis: RedisServer) -> None:
    """SIGSTOP for longer than the lease: another replica folds, and the first one can change nothing any more."""

    async def run() -> None:
        address, clock = redis.address(new_name(), lease=8, timeout=30), MovedClock()
        store, game = new_game(address)
        with folding_process(address, game) as process:
            seat = Seat(address, game, SETTINGS, clock=clock)
            await until(lambda: store.length(game) > 0)  # the other process folds
            await seat.sit_down()
            await play(seat, 100)
            assert not token(seat)
            process.send_signal(signal.SIGSTOP)
            await play(seat, 100)
            await until(lambda: token(seat) == 2, clock)
            await until(lambda: seat.folder.replicas == 1, clock)  # the other one counts as dead
            await play(seat, 100)
            await settled(store, game)
            before = seat.folder.copy.position
            process.send_signal(signal.SIGCONT)
            # It joins again after it has tried to publish.
            await until(lambda: store.client.command("HLEN", store.of(game).replicas) == 2)
            assert token(seat) == 2
            await play(seat, 100)
            await settled(store, game)
            assert seat.folder.copy.position.entries > before.entries
        await seat.stop_folding()
        route = rebuilt(store, game).route
        assert seat.folder.state is not None
        assert take_snapshot(route) == take_snapshot(seat.folder.state.route)
        assert route.step == seat.counts["decided"] == 400
        checked(store, game)
        await seat.get_up()

    run_game(run)


def test_a_publication_of_an_earlier_folder_is_refused(redis: RedisServer) -> None:
    """Whatever an earlier folder has computed: its publication leaves every key as it is."""

    async def run() -> None:
        address, clock = redis.address(new_name(), **PATIENT), MovedClock()
        store, game = new_game(address)
        one, other = Seat(address, game, SETTINGS), Seat(address, game, SETTINGS, clock=clock)
        await one.sit_down()
        await other.side.join()
        await play(one, 50)
        await settled(store, game)
        await one.stop_folding()  # it is still sure to have the lease
        old = one.folder
        play_on = asyncio.create_task(play(one, 50))
        await until(lambda: store.client.command("XLEN", store.of(game).inbox) > 5)
        await play_on
        assert old._fold is not None
        for _, fields in store.client.command("XRANGE", store.of(game).inbox, f"({old._folded}", "+"):
            old._fold.take({name.decode(): value.decode() for name, value in fields.items()})
        assert old._fold.pending
        while not other.folder.token:
            await other.folder.step()
            clock.move(PATIENT["lease"])
        before = contents(store, game)
        assert not await old._publish("9999999999999-0")
        assert contents(store, game) == before
        assert old.token == 0
        await old.step()  # it reads again, and follows
        while await other.folder.step():
            pass
        await old.copy.catch_up()
        assert old.copy.position == other.folder.copy.position
        checked(store, game)
        for seat in (one, other):
            await seat.get_up()

    run_game(run)


def test_a_replica_that_dies_is_cut_off(redis: RedisServer) -> None:
    """SIGKILL with tickets under way: one loss is charged, and the tickets of others are void."""

    async def run() -> None:
        address, clock = redis.address(new_name(), **PATIENT), MovedClock()
        store, game = new_game(address)
        seat = Seat(address, game, SETTINGS, clock=clock)
        await seat.sit_down()
        await play(seat, 100)
        with folding_process(address, game, tickets=5) as process:
            mine = await seat.side.arrive()
            await play(seat, 60)
            process.kill()
            await until(lambda: store.client.command("HGET", store.of(game).state, "generation") == b"2", clock)
        assert await seat.side.decide(mine, RecordedScores((0.3,)), {}) is None
        await play(seat, 60)
        await settled(store, game)
        await seat.stop_folding()
        state = rebuilt(store, game)
        assert state.route.step == seat.counts["decided"] == 220
        assert sum(isinstance(entry, Started) for entry, _ in store.entries(game)) == 2
        assert state.route.by_arrival is not None
        assert state.route.by_arrival.passes >= 1
        checked(store, game)
        await seat.get_up()

    run_game(run)


def test_requests_go_on_by_themselves_when_redis_is_back(tmp_path: Path) -> None:
    """SIGKILL of Redis with its file: requests fail within the timeout, then go on; served rounds are all there."""

    async def run() -> None:
        with redis_server(tmp_path, "--appendonly", "yes", "--appendfsync", "always") as server:
            address = server.address("always", lease=1, timeout=1)
            store, game = new_game(address)
            seats = [Seat(address, game, SETTINGS) for _ in range(2)]
            for seat in seats:
                await seat.sit_down()
            for times in range(2):
                await asyncio.gather(*(play(seat, 60) for seat in seats))
                failed = [seat.counts["failed"] for seat in seats]
                busy = asyncio.gather(*(play_until_one_fails(seat) for seat in seats))
                await until(lambda: all(seat.side.calls > 0 for seat in seats))
                server.kill()
                await until(lambda: all(seat.side.down is not None for seat in seats))
                await busy
                assert all(seat.counts["failed"] > had for seat, had in zip(seats, failed, strict=True)), times
                server.start()
                await until(lambda: all(seat.side.down is None for seat in seats))
            await asyncio.gather(*(play(seat, 60) for seat in seats))
            for seat in seats:
                await seat.side.sent()
            await until(lambda: any(seat.folder.token for seat in seats))
            await settled(store, game)
            for seat in seats:
                await seat.stop_folding()
            route = rebuilt(store, game).route
            # A decision whose reply was lost is a round, too, which nobody was served on.
            known = sum(seat.counts["decided"] for seat in seats)
            assert known <= route.step <= known + sum(seat.counts["failed"] for seat in seats)
            assert [seat.lost for seat in seats] == [None, None]
            checked(store, game)
            for seat in seats:
                await seat.get_up()

    run_game(run)


def unreadable_reply(seat: Seat, monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[], object]) -> None:
    """Let the next reply of Redis be one that no version of the script gives."""
    read = seat.side.messages.read

    def fail(raw: object) -> BatchReply:
        monkeypatch.setattr(seat.side.messages, "read", read)
        meanwhile()
        raise ValueError("unreadable")

    monkeypatch.setattr(seat.side.messages, "read", fail)


@pytest.mark.parametrize("after", [False, True], ids=["while Redis ends", "when Redis is back"])
def test_a_reply_that_cannot_be_read_ends_nothing(after: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The replica begins anew: nobody waits for ever, Redis does not count as gone for ever, and requests go on."""

    async def run() -> None:
        with redis_server(tmp_path, "--appendonly", "yes", "--appendfsync", "always") as server:
            store, game = new_game(address := server.address("anew", lease=1, timeout=1))
            seat = Seat(address, game, SETTINGS)
            await seat.sit_down()
            await play(seat, 20)
            await settled(store, game)
            name = seat.side.messages.replica
            if after:
                server.kill()
                await play_until_one_fails(seat)
                unreadable_reply(seat, monkeypatch, lambda: None)
            else:
                unreadable_reply(seat, monkeypatch, server.kill)
                for _ in range(2):
                    with pytest.raises(StoreError):
                        await asyncio.wait_for(seat.side.arrive(), 30)
            assert seat.side.down is not None
            server.start()
            await until(lambda: seat.side.down is None)
            assert seat.side.messages.replica != name
            before = seat.counts["decided"]
            await play(seat, 20)
            assert seat.counts["decided"] == before + 20
            await settled(store, game)
            checked(store, game)
            await seat.get_up()

    run_game(run)


@pytest.mark.parametrize("everything", [False, True], ids=["the end", "everything"])
def test_a_lost_tail_is_found(everything: bool, tmp_path: Path) -> None:
    """A server that comes back with less than it acknowledged ends the game, for every replica that wrote."""

    async def run() -> None:
        with redis_server(tmp_path) as server:
            address = server.address("lost", lease=2, timeout=2)
            store, game = new_game(address)
            seats = [Seat(address, game, SETTINGS) for _ in range(2)]
            for seat in seats:
                await seat.sit_down()
            await asyncio.gather(*(play(seat, 60) for seat in seats))
            if not everything:
                store.client.command("SAVE")
            await asyncio.gather(*(play(seat, 60) for seat in seats))
            server.kill()
            server.start()
            await until(lambda: all(seat.side.ended is not None for seat in seats))
            for seat in seats:
                await seat.stop_folding()
                await seat.get_up()
            with closing(RedisStore(store.address)) as again:
                assert everything == (again.games() == [])
                if not everything:
                    again.end_game(game, "the test says so")
                    assert [loss.game for loss in again.losses()] == [game.number]
                    assert again.is_over(game)

    run_game(run)


def test_names_of_replicas_are_never_used_twice(redis: RedisServer) -> None:
    """A replica that was taken for dead joins again under another name, and its outcomes still arrive."""

    async def run() -> None:
        address = redis.address(new_name(), **PATIENT)
        store, game = new_game(address)
        seat = Seat(address, game, SETTINGS)
        await seat.sit_down()
        await play(seat, 20)
        names, name = store.of(game), seat.side.messages.replica
        keys = [names.state, names.inbox, names.open, names.replies, names.replicas]
        command = store.client.command
        status = b"alive"
        while status == b"alive":  # its beat moves on
            beat = command("HGET", names.replicas, name)
            status = store.client.run("remove", keys, command("HGET", names.state, "token"), name, beat)
        assert status == b"ok"
        await play(seat, 20)
        await settled(store, game)
        assert seat.side.messages.replica != name
        assert isinstance(seat.side.messages, ReplicaMessages)
        await seat.stop_folding()
        assert rebuilt(store, game).route.step == 40
        await seat.get_up()

    run_game(run)


@pytest.mark.parametrize("always", [False, True])
def test_a_restart_of_redis_together_with_a_replica(always: bool, tmp_path: Path) -> None:
    """Nobody can know what the dead replica had decided last, unless Redis writes to its disk before it replies."""
    options = ("--appendonly", "yes", "--appendfsync", "always" if always else "everysec")

    async def run() -> None:
        with redis_server(tmp_path, *options) as server:
            address = server.address("both", lease=2, timeout=0.5)
            _, game = new_game(address)
            seat = Seat(address, game, SETTINGS)
            await seat.sit_down()
            await play(seat, 60)
            with folding_process(address, game) as process:
                await until(lambda: seat.folder.replicas == 2)
                process.kill()
                server.kill()
            server.start()
            await until(lambda: seat.side.ended is not None or seat.folder.replicas == 1)
            assert (seat.side.ended is None) == always
            await seat.get_up()

    run_game(run)
