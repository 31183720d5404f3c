"""The latest rounds, each with its outcome, without reading the journal from its first entry."""

import asyncio
from pathlib import Path

from bpac.routing.decision import Decision
from bpac.routing.journal.entries import Entry, Resolved
from bpac.stores import SqliteStore, Store
from bpac.stores.sqlite.reading.rounds import DECIDED, RESOLVED
from tests.stores.journals import play


def latest(written: list[Entry]) -> list[tuple[Decision, Resolved | None]]:
    """The rounds of a journal, newest first, each with its latest outcome."""
    outcomes = {entry.step: entry for entry in written if isinstance(entry, Resolved)}
    decided = [entry for entry in written if isinstance(entry, Decision)]
    return [(decision, outcomes.get(decision.step)) for decision in reversed(decided)]


def test_rounds_come_newest_first_with_their_outcomes(store: Store) -> None:
    """From any step downwards; of two outcomes the later one counts; rounds of other games are not included."""
    play(store, 40, "other")
    game, written, _ = play(store, 100)
    late: list[Entry] = [Resolved(97, None, "deadline"), Resolved(97, 0.5), Resolved(3, None, "expert failed")]
    for number, entry in enumerate(late):
        store.append(game, entry, {"at": 10.0 + number})
    asyncio.run(store.durable())
    expected = latest(written + late)

    def read(before: int | None, limit: int) -> list[tuple[Entry, Entry | None]]:
        return [
            (kept.decided.entry, kept.outcome.entry if kept.outcome else None)
            for kept in store.rounds(game, before, limit)
        ]

    assert read(None, 1000) == expected
    assert read(None, 7) == expected[:7]
    assert read(98, 2) == expected[3:5]
    assert read(4, 50) == expected[-3:]
    assert read(2, 50) == expected[-1:]
    for empty in (1, 0, -5):
        assert read(empty, 50) == []
    assert read(10**30, 3) == expected[:3]
    (newest,) = store.rounds(game, 98, 1)
    assert newest.decided.note == {"at": 1.5}
    assert newest.outcome is not None
    assert newest.outcome == (Resolved(97, 0.5), {"at": 11.0})


def test_an_empty_game_has_no_rounds(store: Store) -> None:
    """Nothing is decided yet."""
    assert store.rounds(store.open_game("homework", "", "{}")) == []


def test_indexes_are_used(tmp_path: Path) -> None:
    """Neither decisions nor outcomes are scanned from the first entry, and nothing is sorted."""
    store = SqliteStore(str(tmp_path / "bpac.db"))
    play(store, 10)
    asyncio.run(store.durable())
    plans = [_plan(store, DECIDED, (1, 5, 5)), _plan(store, RESOLVED, (1, 1, 5))]
    store.close()
    assert plans[0].startswith("SEARCH entries USING INDEX decided (game=? AND step<?)")
    assert plans[1].startswith("SEARCH entries USING INDEX resolved (game=? AND <expr>>? AND <expr><?)")
    assert not any("SORT" in plan or "B-TREE" in plan for plan in plans)


def _plan(store: SqliteStore, query: str, values: tuple[int, ...]) -> str:
    return " ".join(row[3] for row in store._all(f"EXPLAIN QUERY PLAN {query}", values))
