"""Games that several replicas share through a real Redis server."""

import asyncio
import random
from collections import Counter
from contextlib import closing
from typing import Any

import pytest

from bpac.errors import StoreError
from bpac.routing.audit.audit import audit_journal
from bpac.routing.decision import Decision
from bpac.routing.journal.rebuild import follow, opened
from bpac.routing.journal.snapshot import take_snapshot
from bpac.routing.learning.learned_score import LearnedScore
from bpac.routing.policies import Budget, Paper, Portfolio
from bpac.routing.router import Router
from bpac.stores import MemoryStore, open_store
from bpac.stores.export import journal_lines
from bpac.stores.redis.folding.fold import Fold, PlainState
from bpac.stores.redis.store import RedisStore
from bpac.stores.store import Game
from tests.redis_servers import RedisServer
from tests.routing.learning.drafts import drafts
from tests.stores.redis.shared_game import PATIENT, Seat, new_game, new_name, run_game, settled

LEARN = LearnedScore(("length", "task"), fit_at=(40, 120), shares=(0.2, 0.1), least_losses=3.0, least_gain=0.0)
GAMES: dict[str, dict[str, Any]] = {
    "default": {"policy": Portfolio()},
    "dithered and learned": {"policy": Portfolio(dither=0.02, learn=LEARN)},
    "in the shadow": {"policy": Portfolio(dither=0.02), "explore": "shadow"},
    "paper": {"policy": Paper()},
    "budget": {"policy": Budget(first=30)},
}


def rebuilt(store: RedisStore, game: Game) -> PlainState:
    """The state that follows from the journal in Redis alone."""
    entries = store.entries(game)
    state = PlainState(opened(next(entries).entry))
    for entry, note in entries:
        follow(state.route, [entry])
        state.owners.apply(entry, note)
    return state


def published(store: RedisStore, game: Game, *names: str) -> list[str]:
    """What the state in Redis says."""
    return [value.decode() for value in store.client.command("HMGET", store.of(game).state, *names)]


async def played(seats: list[Seat], rounds: int, turn: int) -> None:
    """Requests at all seats at once; drafts that lose take longer, and after ``turn`` nearly all of them lose."""
    dice = random.Random(5)

    def time(loss: float) -> float:
        return dice.expovariate(200.0) * (3.0 if loss else 1.0)

    rows = drafts(rounds)
    for start in range(0, rounds, 60):
        hard = start >= turn
        some = [
            row._replace(
                uncertainty=row.uncertainty**2 / (50 if hard else 1), loss=-1.0 if dice.random() < 0.03 else row.loss
            )
            for row in rows[start : start + 60]
        ]
        await asyncio.gather(*(dice.choice(seats).play(row, time, 0.95 if hard else row.loss) for row in some))


@pytest.mark.parametrize("kind", GAMES)
def test_the_journal_leads_to_what_is_published_to_the_bit(kind: str, redis: RedisServer) -> None:
    """Four replicas: the state rebuilt from the journal is that of the folder and of every copy; counters sum to it."""

    async def run() -> None:
        address = redis.address(new_name(), **PATIENT)
        store, game = new_game(address)
        settings = Router(0.2, 0.1, **GAMES[kind]).settings
        seats = [Seat(address, game, settings, snapshot_every=300) for _ in range(4)]
        for seat in seats:
            await seat.sit_down()
        await played(seats, 1200, 700)
        for seat in seats:
            await seat.side.sent()
        await settled(store, game)
        for seat in seats:
            await seat.stop_folding()
        state = rebuilt(store, game)
        route, snapshot = state.route, take_snapshot(state.route)
        folders = [seat.folder for seat in seats if seat.folder.token]
        assert len(folders) == 1
        for seat in seats:
            await seat.folder.copy.catch_up()
            assert seat.folder.state is not None
            assert take_snapshot(seat.folder.state.route) == snapshot
        generation = int(published(store, game, "generation")[0])
        in_force = Fold(state, seats[0].rules, b"", generation, None).in_force()
        assert published(store, game, "in_force", "models") == [in_force.key, in_force.models]
        assert published(store, game, "entries", "head", "step") == [
            *(str(route.entries), store.head(game).hex(), str(route.step))
        ]
        counts = sum((seat.counts for seat in seats), Counter[str]())
        assert (counts["decided"], counts["called"], counts["served"]) == (
            route.step, route.expert_calls, route.drafts_served,
        )  # fmt: skip
        assert (counts["failed"], counts["void"]) == (0, 0)
        assert counts["resolved"] == route.outcomes == route.expert_calls
        assert route.withdrawals <= counts["withdrawn"] == 1200 - counts["decided"]
        assert (route.epoch > 1) != (kind == "paper" or kind.startswith("budget"))
        assert counts["served"] > 20
        assert route.learning is None or route.learning.entries >= 2
        calls, operations = sum(seat.side.calls for seat in seats), sum(seat.side.operations for seat in seats)
        assert calls < operations
        audit = audit_journal(line + "\n" for line in journal_lines(store, game))
        assert audit.differences == []
        assert audit.rounds == route.step
        assert audit.coins.verified + audit.coins.open == route.step
        assert audit.claims >= 3
        for seat in seats:
            await seat.get_up()
        last = rebuilt(store, game)
        assert not last.route.running
        assert published(store, game, "holder", "sealed") == ["", "1"]

    run_game(run)


def test_journals_are_read_as_those_of_other_stores(redis: RedisServer) -> None:
    """Rounds, decisions, keys and links in Redis are those that follow from the entries."""

    async def run() -> None:
        address = redis.address(new_name(), **PATIENT)
        store, game = new_game(address)
        seat = Seat(address, game, Router(0.2, 0.1).settings, snapshot_every=100)
        await seat.sit_down()
        await played([seat], 300, 300)
        await seat.side.sent()
        await settled(store, game)
        await seat.get_up()
        entries = list(store.entries(game))
        memory = MemoryStore()
        kept = memory.open_game(game.route, game.segment, game.terms)
        for entry, note in entries:
            memory.append(kept, entry, note)
        for before, limit in ((None, 5), (None, 1000), (100, 7), (1, 5), (2, 5), (10**6, 3)):
            assert store.rounds(game, before, limit) == memory.rounds(kept, before, limit)
        last = store.rounds(game, limit=1)[0].decided.entry
        assert isinstance(last, Decision)
        for step in (0, 1, 2, 57, last.step, last.step + 1):
            assert store.decision(game, step) == memory.decision(kept, step)
        assert list(store.links(game)) == list(memory.links(kept))
        assert store.head(game) == memory.head(kept) == next(reversed(list(store.links(game)))).head
        assert [stored.entry for stored in store.entries(game, 40)] == [stored.entry for stored in entries[40:]]
        key = store.key(game, 1)
        assert key is not None
        assert key.first_step == 1
        sharing = store.sharing(game)
        del sharing["entries_per_second"]  # these entries have no times, or just any
        assert sharing == {
            "folder": "", "replicas": 0, "lag": 0, "entries": len(entries), "outside": {"drafts": 0, "unreported": 0},
        }  # fmt: skip
        times = [note["at"] for _, note in entries[-500:] if "at" in note]
        speed = store.entries_per_second(game, now=max(times, default=1.0) + 1.0)
        assert speed == (len(entries[-500:]) / (max(times) + 1.0 - min(times)) if times else None)
        with pytest.raises(StoreError, match="written by the gateway that folds"):
            store.append(game, entries[0].entry, {})

    run_game(run)


def test_the_same_game_is_opened_once(redis: RedisServer) -> None:
    """Replicas that start at the same moment get one game; games that are resumed are the latest."""
    address = redis.address(new_name())
    stores = [new_game(address)[0] for _ in range(2)]
    (first,) = stores[0].games()
    stores[0].end_game(first, "a test")
    second = stores[1].open_game("route", "", "{}")
    assert (first.number, second.number) == (1, 2)
    games, before = stores[0].listed()
    assert stores[1].open_game("route", "", "other").number == 3
    assert not stores[0]._opened(before, 4, "[]")  # the list has changed since it was read
    stores[0].resume(first)
    assert [game.number for game in stores[1].games()] == [2, 3, 1]
    assert len(games) == 2
    with (
        closing(open_store(address, read_only=True)) as reading,
        pytest.raises(StoreError, match="for reading only"),
    ):
        reading.open_game("route", "", "{}")
