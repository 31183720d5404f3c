"""Mistakes of operators around a shared game: keys that go missing, and gateways that do not agree."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from bpac.errors import StoreError
from bpac.routing.router import Router
from bpac.stores.redis.journal import EntriesLost
from bpac.stores.redis.keys import GameNames
from bpac.stores.redis.messages import resolving
from bpac.stores.redis.server.address import read_address
from bpac.stores.redis.store import RedisStore
from bpac.testing import ScriptedServer
from tests.faults.books import Books
from tests.faults.callers import Callers
from tests.faults.gateway import Gateway
from tests.faults.lives import Lives
from tests.gateway.configured import wait_for
from tests.gateway.law import KnownPair
from tests.redis_servers import RedisServer, redis_server
from tests.stores.redis.shared_game import PATIENT, MovedClock, Seat, new_game, new_name, run_game, settled
from tests.stores.redis.test_shared_faults import checked, play, until

SETTINGS = Router(0.2, 0.1).settings


def test_a_server_that_drops_keys_is_refused(tmp_path: Path) -> None:
    """A journal must not vanish when memory is full: the error names the setting and the remedy."""
    with redis_server(tmp_path, "--maxmemory-policy", "allkeys-lru") as server:
        with pytest.raises(StoreError, match=r"allkeys-lru.*set  maxmemory-policy noeviction"):
            RedisStore(read_address(server.address("evicting")))
        assert server.command("CONFIG SET maxmemory-policy volatile-lru").startswith(b"+OK")
        RedisStore(read_address(server.address("evicting"))).close()


@pytest.mark.parametrize("key", ["inbox", "keys", "journal", "replies", "state"])
def test_a_game_whose_keys_are_gone_ends(redis: RedisServer, key: str) -> None:
    """Whichever key is deleted in a running game, the game ends: what it decided is not known any more."""

    async def run() -> None:
        store, game = new_game(address := redis.address(new_name(), lease=2))
        seats = [Seat(address, game, SETTINGS) for _ in range(2)]
        for seat in seats:
            await seat.sit_down()
        await asyncio.gather(*(play(seat, 40) for seat in seats))
        await settled(store, game)
        assert store.client.command("DEL", GameNames(store.address.name, game.number).of(key)) == 1
        await until(lambda: all(seat.side.ended is not None or seat.lost is not None for seat in seats))
        for seat in seats:
            with pytest.raises(StoreError):
                await seat.side.arrive()
            await seat.get_up()

    run_game(run)


async def folded_on(seat: Seat) -> None:
    """Fold for a while."""
    for _ in range(400):
        await seat.folder.step()
        await asyncio.sleep(0.005)


@pytest.mark.parametrize("which", ["the last", "one before", "all, and new ones come"])
def test_events_that_are_gone_are_noticed_without_another_decision(redis: RedisServer, which: str) -> None:
    """Events that are deleted before they are folded end the game when the folder looks next, also if nobody asks."""

    async def run() -> None:
        store, game = new_game(address := redis.address(new_name(), lease=0.4))
        seat = Seat(address, game, SETTINGS)
        await seat.sit_down()
        await play(seat, 20)
        await settled(store, game)
        await seat.stop_folding()
        names = store.of(game)
        for step in (101, 102, 103):  # outcomes: no decision would notice that one is gone
            await seat.side.told(resolving(step, 0.0, {}))
        events = [name for name, _ in store.client.command("XRANGE", names.inbox, "-", "+")]
        if which == "all, and new ones come":
            store.client.command("DEL", names.inbox)
            store.client.command("XADD", names.inbox, "0-*", "kind", "left", "replica", "x")
        else:
            assert store.client.command("XDEL", names.inbox, events[-1 if which == "the last" else -2]) == 1
        with pytest.raises(EntriesLost):
            await folded_on(seat)
        await seat.get_up()

    run_game(run)


def test_gateways_that_start_at_once_share_one_game(redis: RedisServer) -> None:
    """Two games of one route would each spend α."""
    address = read_address(redis.address(new_name()))
    stores = [RedisStore(address) for _ in range(8)]
    together, numbers = threading.Barrier(len(stores)), list[int]()

    def start(store: RedisStore) -> None:
        together.wait()
        found = store.games()
        game = found[-1] if found and not store.is_over(found[-1]) else store.open_game("route", "", "{}")
        numbers.append(game.number)

    threads = [threading.Thread(target=start, args=(store,)) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(numbers) == len(stores)
    assert len(set(numbers)) == 1 == len(stores[0].games())
    for store in stores:
        store.close()


def test_the_number_of_a_lost_game_is_not_used_again(redis: RedisServer) -> None:
    """A gateway that finds out late that Redis was emptied must not end the game that has begun since."""
    store, game = new_game(redis.address(new_name()))
    late = RedisStore(store.address)
    for key in store.client.command("KEYS", f"*{{{store.address.name}*"):
        store.client.command("DEL", key)
    store.end_game(game, "the game is gone")
    new = store.open_game(game.route, game.segment, game.terms)
    late.end_game(game, "the game is gone")
    assert new.number != game.number
    assert not store.is_over(new)
    assert [loss.game for loss in late.losses()] == [game.number]
    assert late.secret == store.secret
    store.close()
    late.close()


def test_a_folder_that_missed_events_gives_up(redis: RedisServer) -> None:
    """The inbox was cut by another folder: nothing is published. It was cut by nobody: the game ends."""

    async def run() -> None:
        store, game = new_game(address := redis.address(new_name(), **PATIENT))
        clock = MovedClock()
        paused, other = Seat(address, game, SETTINGS), Seat(address, game, SETTINGS, clock=clock)
        await paused.sit_down()
        await play(paused, 20)
        await until(lambda: paused.folder.token == 1)
        await settled(store, game)
        await paused.stop_folding()
        await other.sit_down()
        await until(lambda: other.folder.token == 2, clock)
        await play(other, 40)
        await settled(store, game)
        await other.stop_folding()
        await play(other, 20)
        assert await paused.folder.step() is False
        assert (paused.folder.token, other.folder.token) == (0, 2)
        checked(store, game)
        inbox = GameNames(store.address.name, game.number).inbox
        (first, _), *_ = store.client.command("XREVRANGE", inbox, "+", "-", "COUNT", 30)[::-1]
        store.client.command("XTRIM", inbox, "MINID", first)
        with pytest.raises(EntriesLost, match="lost events"):
            await other.folder.step()

    run_game(run)


def test_gateways_with_different_promises_do_not_mix(redis: RedisServer, tmp_path: Path) -> None:
    """Each of two gateways whose ε differ plays a game of its own, and no round is in the other one's journal."""
    address = redis.address(new_name(), lease=5)
    epsilons = (0.2, 0.1)
    with (
        closing(Lives()) as lives,
        ScriptedServer(KnownPair()) as models,
        closing(RedisStore(read_address(address))) as store,
    ):
        gateways = [
            Gateway(lives, tmp_path / str(epsilon), models.base_url, address, epsilon=epsilon) for epsilon in epsilons
        ]
        for gateway in gateways:
            gateway.start()
        for gateway in gateways:
            gateway.wait_until_ready()
        urls = [gateway.url for gateway in gateways]
        with Callers(urls, 4) as callers:
            wait_for(lambda: all(callers.decided_since(0.0, url, least=30) for url in urls))
            callers.pause()
        is_folded: Callable[[Gateway], bool] = lambda one: not one.game()["owed"] and not one.shared()["lag"]  # noqa: E731
        wait_for(lambda: all(map(is_folded, gateways)))
        books = Books(store)
        books.check(callers.got)
        assert (books.missing, books.wrong, books.twice) == ([], [], 0)
        games = {url: {one.decision.split("-")[1] for one in callers.got if one.url == url} for url in urls}
        assert [len(numbers) for numbers in games.values()] == [1, 1]
        assert len(books.games) == 2
        found = [gateway.game() for gateway in gateways]
        assert found[0]["game"] != found[1]["game"]
        opened = {number: book.route for number, book in books.games.items()}
        shown = [route.settings.epsilon for one in found if (route := opened[one["game"]]) is not None]
        assert tuple(shown) == epsilons
