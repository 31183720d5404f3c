"""Scripts that fail in their middle: Redis takes nothing back, so that a game that is half written must end."""

import asyncio
from collections.abc import Iterator
from importlib.resources import files

import pytest

from bpac.errors import StoreError
from bpac.routing.recorded_terms import RecordedScores
from bpac.routing.router import Router
from bpac.stores.redis.messages import CUT_OFF, arriving
from bpac.stores.redis.server.scripts import SHARED
from tests.redis_servers import RedisServer
from tests.stores.redis.shared_game import PATIENT, MovedClock, Seat, new_game, new_name, run_game, settled
from tests.stores.redis.test_shared_faults import checked, contents, play, until

SETTINGS = Router(0.2, 0.1).settings
# Dead replicas that are remembered at most.
MOST_DEAD = 1000


@pytest.fixture
def server(redis: RedisServer) -> Iterator[RedisServer]:
    """A server whose memory and whose user a test may limit."""
    yield redis
    assert redis.command("CONFIG SET maxmemory 0").startswith(b"+OK")
    assert redis.command("ACL SETUSER default +@all").startswith(b"+OK")


@pytest.mark.parametrize(
    "key", ["state", "inbox", "journal", "open", "keys", "replies", "replicas", "claims"]
)  # fmt: skip
def test_a_key_that_was_replaced_ends_the_game(redis: RedisServer, key: str) -> None:
    """Whichever key an operator overwrites with another type, the game ends, and another one can begin."""

    async def run() -> None:
        store, game = new_game(address := redis.address(new_name(), lease=2))
        seat = Seat(address, game, SETTINGS, snapshot_every=10)
        await seat.sit_down()
        await play(seat, 20)
        await settled(store, game)
        store.client.command("SET", store.of(game).of(key), "planted")
        while seat.side.ended is None:
            await play(seat, 20)
            await asyncio.sleep(0.01)
        with pytest.raises(StoreError):
            await seat.side.arrive()
        store.end_game(game, "replaced")
        assert store.is_over(game)
        successor = store.open_game("route", "", "{}")
        assert successor.number != game.number
        other = Seat(address, successor, SETTINGS)
        await other.sit_down()
        await play(other, 20)
        assert other.counts["decided"] == 20
        await other.get_up()

    run_game(run)


@pytest.mark.parametrize("turns", range(4))
def test_who_waits_while_the_game_ends_is_told(redis: RedisServer, turns: int) -> None:
    """The folder finds the damage while operations are queued, or while those before them are on their way."""

    async def run() -> None:
        store, game = new_game(address := redis.address(new_name(), **PATIENT))
        seat = Seat(address, game, SETTINGS)
        await seat.sit_down()
        await play(seat, 20)
        await settled(store, game)
        await seat.stop_folding()
        callers = [asyncio.create_task(seat.side.arrive())]
        for _ in range(turns):
            await asyncio.sleep(0)
        callers.append(asyncio.create_task(seat.side.arrive()))
        await asyncio.sleep(0)
        seat.side.end(StoreError("the folder has found the damage"))
        found = await asyncio.wait_for(asyncio.gather(*callers, return_exceptions=True), PATIENT["timeout"])
        assert isinstance(found[1], StoreError)
        await asyncio.sleep(0.01)
        with pytest.raises(StoreError):
            await seat.side.arrive()

    run_game(run)


@pytest.mark.parametrize("refused", ["xadd", "hincrby"])
def test_a_batch_that_fails_in_its_middle_ends_the_game(server: RedisServer, refused: str) -> None:
    """A ticket is gone and its decision is not there: without the note, the round would be lost without a word."""

    async def run() -> None:
        store, game = new_game(address := server.address(new_name(), **PATIENT))
        seat = Seat(address, game, SETTINGS)
        await seat.sit_down()
        await play(seat, 20)
        tickets = [await seat.side.arrive() for _ in range(2)]
        await settled(store, game)
        await seat.stop_folding()
        assert server.command(f"ACL SETUSER default -{refused}").startswith(b"+OK")
        before = contents(store, game)
        deciding = asyncio.create_task(seat.side.decide(tickets[0], RecordedScores((0.3,)), {}))
        await until(lambda: store.client.command("HGET", store.of(game).state, "writing") == b"1")
        after = contents(store, game)
        assert len(after["open"]) == len(before["open"]) - 1  # the attack is real
        with pytest.raises(StoreError):
            await deciding
        assert seat.side.ended is not None
        assert "half written" in str(seat.side.ended)
        assert server.command("ACL SETUSER default +@all").startswith(b"+OK")
        # Nobody else goes on with it, either.
        keys = [store.of(game).of(part) for part in ("state", "replies", "replicas")]
        assert store.client.run("join", keys, "another") == b"lost"
        names = store.of(game)
        assert store.client.run("retire", [names.state, names.inbox, names.replicas], "moved", "") == b"half"
        assert contents(store, game)["inbox"] == after["inbox"]

    run_game(run)


def test_a_publication_that_fails_in_its_middle_ends_the_game(server: RedisServer) -> None:
    """The folder may not trim the inbox any more: entries are written and the rest is not, so that the game ends."""

    async def run() -> None:
        store, game = new_game(address := server.address(new_name(), **PATIENT))
        seat = Seat(address, game, SETTINGS)
        await seat.sit_down()
        await play(seat, 20)
        await settled(store, game)
        assert server.command("ACL SETUSER default -xtrim").startswith(b"+OK")
        while seat.side.ended is None:
            await play(seat, 20)
            await asyncio.sleep(0.01)
        await seat.stop_folding()

    run_game(run)


def test_a_full_memory_refuses_scripts_as_a_whole(server: RedisServer) -> None:
    """At maxmemory nothing of a batch is written, the cause is named, and the game goes on when there is room."""

    async def run() -> None:
        store, game = new_game(address := server.address(new_name(), lease=60, timeout=1))
        seat = Seat(address, game, SETTINGS)
        await seat.sit_down()
        await play(seat, 40)
        ticket = await seat.side.arrive()
        await settled(store, game)
        assert server.command("CONFIG SET maxmemory 1").startswith(b"+OK")
        before = contents(store, game)
        # HDEL comes first in a decision, and is not refused when memory is full; the note before it is.
        with pytest.raises(StoreError, match="its memory is full"):
            await seat.side.decide(ticket, RecordedScores((0.3,)), {})
        assert "maxmemory" in str(seat.side.down and seat.side.down.remedy)
        assert contents(store, game) == before
        assert server.command("CONFIG SET maxmemory 0").startswith(b"+OK")
        await until(lambda: seat.side.down is None)
        await play(seat, 40)
        await settled(store, game)
        await seat.get_up()
        checked(store, game)
        assert seat.counts["decided"] == 80

    run_game(run)


def test_redis_refuses_the_first_write_of_a_script_or_none(server: RedisServer) -> None:
    """Memory that is exceeded by a script does not stop it; one that was exceeded before stops its first write."""
    store, _ = new_game(server.address(name := new_name()))
    grow = "for at = 1, 300 do redis.call('HSET', KEYS[1], at, string.rep('x', 20000)) end return 'done'"
    used = int(store.client.command("INFO", "memory")["used_memory"])
    assert server.command(f"CONFIG SET maxmemory {used + 2_000_000}").startswith(b"+OK")
    assert store.client.command("EVAL", grow, 1, f"{{{name}}}:a") == b"done"
    with pytest.raises(StoreError, match="its memory is full"):
        store.client.command("EVAL", grow, 1, f"{{{name}}}:b")
    assert server.command("CONFIG SET maxmemory 0").startswith(b"+OK")
    assert store.client.command("EXISTS", f"{{{name}}}:b") == 0
    # A command that memory does not stop lets the others through: scripts begin with one that it stops.
    assert server.command("CONFIG SET maxmemory 1").startswith(b"+OK")
    assert store.client.command("EVAL", f"redis.call('HDEL', KEYS[1], 1) {grow}", 1, f"{{{name}}}:a") == b"done"
    assert server.command("CONFIG SET maxmemory 0").startswith(b"+OK")
    store.client.command("DEL", f"{{{name}}}:a")


def test_scripts_that_write_more_than_once_say_so() -> None:
    """Whoever adds a write to a script of a game must note it: the others write once, or before the game is listed."""
    writes = ("HSET", "HSETNX", "HDEL", "HINCRBY", "XADD", "XTRIM", "SET", "DEL", "RPUSH", "LPOP", "ZADD", "EXPIRE")
    # Before a game is listed; the list of games; and what no decision depends on.
    others = {"adopt", "begin_adopted", "open_game", "spend", "settle_charge", "exchange", *SHARED}
    for file in (files("bpac.stores.redis") / "lua").iterdir():
        name = file.name.removesuffix(".lua")
        text = file.read_text(encoding="utf-8")
        count = sum(text.count(f"redis.call('{write}'") for write in writes) + text.count("cut_off(")
        if name not in others:
            assert count <= 1 or name in SHARED["writing"], name
            assert text.count("begin_writing(") >= (count > 1), name


def test_dead_replicas_are_forgotten_in_the_end(redis: RedisServer) -> None:
    """However many replicas have died or left, Redis remembers a bounded number, with those that died last."""

    async def run() -> None:
        store, game = new_game(address := redis.address(new_name(), **PATIENT))
        clock = MovedClock()
        seat = Seat(address, game, SETTINGS, clock=clock)
        await seat.sit_down()
        await play(seat, 20)
        await settled(store, game)
        await seat.stop_folding()
        names, command = store.of(game), store.client.command
        keys = [names.state, names.inbox, names.open, names.replies, names.replicas]
        token = command("HGET", names.state, "token")
        for number in range(MOST_DEAD + 200):
            assert store.client.run("join", [names.state, names.replies, names.replicas], f"r{number}") == b"ok"
            by = 0 if number % 10 == 0 else token  # every tenth leaves
            assert store.client.run("remove", keys, by, f"r{number}", "0") == b"ok"
        assert store.client.run("join", [names.state, names.replies, names.replicas], "left") == b"ok"
        assert store.client.run("remove", keys, 0, "left", "") == b"ok"
        assert command("HEXISTS", names.replies, "left") == 0
        assert command("HLEN", names.replies) <= MOST_DEAD + 1
        assert command("HEXISTS", names.replies, seat.side.messages.replica) == 1
        messages = seat.side.messages
        for number, known in ((0, b"lost"), (1, b"lost"), (MOST_DEAD + 199, b"gone")):
            arguments = [f"r{number}", 1, *messages.batch([arriving(1), CUT_OFF], "n")[2:]]
            assert (await seat.client.run("batch", messages.keys, *arguments))[0] == known
        await seat.get_up()

    run_game(run)
