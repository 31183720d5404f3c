"""Replicas that do not fold: they read nothing until somebody looks, and then have the state to the bit."""

from itertools import islice
from typing import Any

import pytest

from bpac.routing.journal.rebuild import follow, opened
from bpac.routing.journal.snapshot import take_snapshot
from bpac.routing.policies import Portfolio
from bpac.routing.router import Router
from bpac.stores.redis.folding.fold import PlainState
from bpac.stores.redis.journal import WORTH_A_SNAPSHOT, EntriesLost, PlainRestoring
from bpac.stores.redis.store import RedisStore
from bpac.stores.store import Game
from tests.redis_servers import RedisServer
from tests.stores.redis.shared_game import PATIENT, MovedClock, Seat, new_game, new_name, run_game, settled
from tests.stores.redis.test_shared_faults import checked, until
from tests.stores.redis.test_shared_games import LEARN, played, rebuilt

SETTINGS = Router(0.2, 0.1, policy=Portfolio(dither=0.02, learn=LEARN)).settings
NEVER_HARD = 10_000


async def two_seats(address: str, game: Game, clock: MovedClock | None = None) -> tuple[Seat, Seat]:
    """A replica that folds, and one that does not."""
    options = {} if clock is None else {"clock": clock}
    folds, follows = Seat(address, game, SETTINGS, snapshot_every=200), Seat(address, game, SETTINGS, **options)
    await folds.sit_down()
    await until(lambda: folds.folder.token == 1)
    await follows.sit_down()
    return folds, follows


def same(seat: Seat, store: RedisStore, game: Game) -> bool:
    """Whether a replica has the state that follows from the entries it has read, and from them alone, to the bit."""
    assert seat.folder.state is not None
    # A learned score may have joined since.
    first, *others = islice((entry for entry, _ in store.entries(game)), seat.folder.copy.position.entries)
    route = opened(first)
    follow(route, others)
    return take_snapshot(seat.folder.state.route) == take_snapshot(route)


def test_a_replica_reads_the_journal_only_when_somebody_looks(
    redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It decides all the same; when it looks it goes on from a snapshot that is far ahead, and follows what is near."""
    loaded: list[int] = []
    load = PlainRestoring.load

    def counted(self: PlainRestoring, snapshot: dict[str, Any]) -> PlainState:
        loaded.append(1)
        return load(self, snapshot)

    monkeypatch.setattr(PlainRestoring, "load", counted)

    async def run() -> None:
        address = redis.address(new_name(), **PATIENT)
        store, game = new_game(address)
        folds, follows = await two_seats(address, game)
        for seat in (folds, follows):
            await played([seat], 60, NEVER_HARD)
        assert follows.counts["decided"] > 50
        await settled(store, game)
        copy = follows.folder.copy
        assert (copy.state, copy.position.entries, loaded) == (None, 0, [])
        await follows.folder.refresh()
        assert copy.position.entries > 60
        assert same(follows, store, game)
        before = len(loaded)
        await played([folds], 40, NEVER_HARD)
        await settled(store, game)
        await follows.folder.refresh()  # a few entries are followed
        assert len(loaded) == before
        assert same(follows, store, game)
        await played([folds], WORTH_A_SNAPSHOT + 100, NEVER_HARD)
        await settled(store, game)
        await follows.folder.refresh()
        assert len(loaded) == before + 1
        assert same(follows, store, game)
        assert follows.folder.decided == follows.folder.folded == folds.folder.folded > WORTH_A_SNAPSHOT

    run_game(run)


def snapshot_at(store: RedisStore, game: Game) -> int:
    """The number of entries that the latest snapshot of a game contains."""
    return int(store.client.command("HGET", store.of(game).state, "snapshot"))


def test_a_replica_that_takes_over_goes_on_from_snapshot_and_tail(redis: RedisServer) -> None:
    """It has read nothing, or little, and entries behind the snapshot are archived: the journal goes on to the bit."""

    async def run() -> None:
        address, clock = redis.address(new_name(), **PATIENT), MovedClock()
        store, game = new_game(address)
        folds, follows = await two_seats(address, game, clock)
        await played([folds], 100, NEVER_HARD)
        await settled(store, game)
        await follows.folder.refresh()
        await played([folds], 250, NEVER_HARD)
        await settled(store, game)
        # The latest entry may have come with a snapshot; then there is no tail yet.
        while (snapshot := snapshot_at(store, game)) == len(list(store.links(game))):
            await played([folds], 1, NEVER_HARD)
            await settled(store, game)
        await folds.stop_folding()
        whole = list(store.links(game))
        assert follows.folder.copy.position.entries < snapshot < len(whole)
        state = take_snapshot(rebuilt(store, game).route)
        store.client.command("XTRIM", store.of(game).journal, "MINID", f"{snapshot + 1}-0")
        await follows.stop_folding()
        while follows.folder.token != 2:  # by hand, so that nothing else happens after it has taken over
            clock.move(PATIENT["lease"])
            await follows.folder.step()
        assert follows.folder.state is not None
        assert take_snapshot(follows.folder.state.route) == state
        assert follows.folder.copy.position.head == whole[-1].head

    run_game(run)


def test_entries_that_are_missing_after_the_snapshot_are_found(redis: RedisServer) -> None:
    """A journal that was cut where no snapshot takes the place of its entries ends the game."""

    async def run() -> None:
        address = redis.address(new_name(), **PATIENT)
        store, game = new_game(address)
        folds, follows = await two_seats(address, game)
        await played([folds], 300, NEVER_HARD)
        await settled(store, game)
        while len(list(store.links(game))) < snapshot_at(store, game) + 5:  # there must be something to cut
            await played([folds], 1, NEVER_HARD)
            await settled(store, game)
        await folds.stop_folding()
        await follows.stop_folding()
        checked(store, game)
        snapshot = snapshot_at(store, game)
        store.client.command("XTRIM", store.of(game).journal, "MINID", f"{snapshot + 3}-0")
        with pytest.raises(EntriesLost, match="lost entries"):
            await follows.folder.refresh()

    run_game(run)
