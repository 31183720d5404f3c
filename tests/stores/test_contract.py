"""What every store must do."""

import asyncio
import hashlib

import pytest

from bpac.routing.journal.chain import game_text
from bpac.routing.journal.entries import Resolved
from bpac.routing.journal.entry_lines import entry_from_json
from bpac.routing.router import Router
from bpac.stores import CoinKey, Store, StoreError
from tests.stores.journals import claim, play


def test_what_is_appended_is_read_back_in_order(store: Store) -> None:
    """Entries, notes and every bit of their numbers come back, from the first entry or from any other."""
    game, written, _ = play(store, 300)
    asyncio.run(store.durable())
    kept = list(store.entries(game))
    assert [entry for entry, _ in kept] == written
    assert [note for _, note in kept] == [{}] + [{"at": 1.5}] * (len(written) - 1)
    assert [entry for entry, _ in store.entries(game, after=123)] == written[123:]


def test_a_router_continues_where_it_stopped(store: Store) -> None:
    """The journal, or a snapshot and the rest of it, give the same state."""
    game, written, router = play(store, 300)
    snapshot = router.snapshot()
    store.save_snapshot(game, snapshot, claim(router, len(written)))
    asyncio.run(store.durable())
    assert store.snapshot(game) == snapshot
    whole = Router.rebuild(kept.entry for kept in store.entries(game))
    rest = Router.rebuild((kept.entry for kept in store.entries(game, len(written))), snapshot=store.snapshot(game))
    assert whole.snapshot() == rest.snapshot() == snapshot
    assert store.claims(game) == [claim(router, len(written), store.head(game).hex())]
    with pytest.raises(StoreError, match="a claim about 3 entries does not fit"):
        store.save_snapshot(game, snapshot, claim(router, 3))


def test_each_entry_carries_a_hash_over_all_before_it(store: Store) -> None:
    """The chain begins with the game and continues with the entries as they are written, the same in every store."""
    game, written, _ = play(store, 40)
    asyncio.run(store.durable())
    head = hashlib.sha256(game_text(1, "homework", "", "{}").encode()).digest()
    assert game.head == head
    links = list(store.links(game))
    assert [entry_from_json(link.text) for link in links] == written
    for link in links:
        head = hashlib.sha256(head + link.text.encode()).digest()
        assert link.head == head
    assert store.head(game) == head
    other = store.open_game("homework", "", "other terms")
    assert store.head(other) == other.head != game.head
    assert list(store.links(other)) == []


def test_keys_of_coins_are_found_by_step(store: Store) -> None:
    """The key of the block that a step belongs to; none before the first block."""
    game, other = store.open_game("homework", "", "{}"), store.open_game("law", "", "{}")
    keys = [CoinKey(3, b"a" * 32), CoinKey(10, b"b" * 32), CoinKey(10, b"c" * 32)]
    for key in keys:
        store.keep_key(game, key)
        assert store.key(game, 1000) == key  # at once, before it is durable
    asyncio.run(store.durable())
    assert [store.key(game, step) for step in (2, 3, 9, 10, 11)] == [None, keys[0], keys[0], keys[2], keys[2]]
    assert store.key(other, 5) is None
    assert store.losses() == []


def test_games_are_kept_apart(store: Store) -> None:
    """Entries of several games may be mixed; each game reads back its own."""
    one, first, _ = play(store, 20, "one")
    other, second, _ = play(store, 30, "other")
    store.append(one, Resolved(2, None, "late"), {})
    asyncio.run(store.durable())
    assert store.games() == [one, other]
    assert [kept.entry for kept in store.entries(one)] == [*first, Resolved(2, None, "late")]
    assert [kept.entry for kept in store.entries(other)] == second
    assert store.snapshot(one) is None
    assert store.claims(one) == []


def test_a_decision_is_found_by_its_step(store: Store) -> None:
    """A step that was never decided has none."""
    game, written, _ = play(store, 50)
    asyncio.run(store.durable())
    decided = [entry for entry in written if getattr(entry, "propensity", None) is not None]
    assert [store.decision(game, step) for step in range(1, 51)] == decided
    assert store.decision(game, 0) is None
    assert store.decision(game, 51) is None


def test_many_callers_wait_at_once(store: Store) -> None:
    """Each waits only until its own entries are durable, and all continue."""

    async def run() -> None:
        game = store.open_game("homework", "", "{}")
        router = Router(0.1, journal=lambda entry: store.append(game, entry, {}))

        async def ask() -> None:
            for _ in range(20):
                step = router.decide(0.5).step
                await store.durable()
                assert store.decision(game, step) is not None

        await asyncio.gather(*(ask() for _ in range(32)))

    asyncio.run(run())


def test_a_closed_store_accepts_nothing(store: Store) -> None:
    """An append raises, and nothing is written later."""
    game, _, _ = play(store, 1)
    store.close()
    with pytest.raises(StoreError, match="closed"):
        store.append(game, Resolved(1, 0.0), {})


def test_a_resumed_game_is_the_latest(store: Store) -> None:
    """Games are listed in the order in which they were opened or last resumed; a new one comes last."""
    first, second = (play(store, 3)[0] for _ in range(2))
    store.resume(first)
    assert store.games() == [second, first]
    third = store.open_game("homework", "", "{}")
    assert store.games() == [second, first, third]
    assert third.number == 3
    assert all(store.archived(game) is None for game in store.games())
