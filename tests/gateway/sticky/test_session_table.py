"""The table of sessions: when an episode is over, and what is kept of how many."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import pytest

from bpac.errors import SnapshotError
from bpac.gateway.config.file import Config
from bpac.gateway.games.money.savings import Savings
from bpac.gateway.games.rounds import sessions as module
from bpac.gateway.games.rounds.sessions import SessionClaim, Sessions, session_key
from bpac.routing.decision import Decision
from bpac.routing.journal.entries import Resolved
from bpac.stores.memory import MemoryStore
from bpac.stores.store import StoredEntry, StoredRound
from bpac.wire.usage import Usage
from tests.betting.rounds import a_round
from tests.gateway.configured import settings

ROUTE = {"sticky_by": "user", "sticky_idle": 10.0, "sticky_age": 100.0, "sticky_requests": 5}


def table(clock: Callable[[], float]) -> Sessions:
    """An empty table."""
    config = Config.read(settings("http://127.0.0.1:1/v1", **ROUTE))
    return Sessions(config.routes["homework"], clock)


def test_an_episode_ends_by_silence_by_age_and_by_number() -> None:
    """Whichever comes first; the next request begins another one, and what is over is forgotten."""

    async def main() -> None:
        now = [1000.0]
        sessions = table(lambda: now[0])
        first = a_round(step=1)

        def begin() -> None:
            assert isinstance(sessions.look("a"), SessionClaim)
            sessions.decided("a", first)

        begin()
        for _ in range(4):
            assert sessions.look("a") is first
        begin()  # the sixth request
        now[0] += 10.0
        assert sessions.look("a") is first
        now[0] += 10.1
        begin()
        for _ in range(3):
            now[0] += 9.0
            assert sessions.look("a") is first
        now[0] = 2000.0
        assert sessions.to_json() == {"sticky_by": "user", "open": 0, "forgotten": 0}
        sessions.sweep()
        assert not sessions._open
        begin()
        now[0] += 100.1
        begin()

    asyncio.run(main())


def test_a_claim_belongs_to_one_request() -> None:
    """Others wait, one of them gets it when it is given back, and giving it back late or twice changes nothing."""

    async def main() -> None:
        sessions = table(lambda: 0.0)
        claim = await sessions.join("a")
        assert isinstance(claim, SessionClaim)
        waiting = [asyncio.create_task(sessions.join("a")) for _ in range(3)]
        left = asyncio.create_task(sessions.join("a"))
        await asyncio.sleep(0)
        left.cancel()
        sessions.leave(claim)
        await asyncio.sleep(0.01)
        (second,) = [task.result() for task in waiting if task.done()]
        assert isinstance(second, SessionClaim)
        assert second != claim
        sessions.leave(claim)
        await asyncio.sleep(0.01)
        assert sum(task.done() for task in waiting) == 1
        decision = a_round()
        sessions.decided("a", decision)
        sessions.leave(second)
        found = await asyncio.gather(*waiting)
        assert [one for one in found if isinstance(one, Decision)] == [decision] * 2

    asyncio.run(main())


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The session that was used least recently goes, and it is counted unless it was over."""
    monkeypatch.setattr(module, "MOST_SESSIONS", 2)

    async def main() -> None:
        now = [0.0]
        sessions = table(lambda: now[0])
        for name in ("a", "b"):
            sessions.decided(name, a_round())
        assert isinstance(sessions.look("a"), Decision)
        sessions.decided("c", a_round())
        assert isinstance(sessions.look("b"), SessionClaim)
        assert sessions.to_json()["forgotten"] == 1
        now[0] = 50.0
        sessions.decided("d", a_round())
        assert sessions.to_json() == {"sticky_by": "user", "open": 1, "forgotten": 1}

    asyncio.run(main())


def test_sessions_are_read_from_the_notes_of_the_latest_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """The latest decision of each counts, and none that is too old; rounds without a session are passed over."""
    monkeypatch.setattr(module, "_BATCH", 2)
    notes: list[dict[str, Any]] = [
        {"at": 10.0, "session": "old"},
        {"at": 950.0, "session": "a"},
        {"at": 960.0},
        {"at": 970.0, "session": "a"},
        {"at": 980.0, "session": "b"},
    ]
    rounds = [StoredRound(StoredEntry(a_round(step=step), note), None) for step, note in enumerate(notes, start=1)]

    class Rounds(MemoryStore):
        def rounds(self, game: Any, before: int | None = None, limit: int = 50) -> list[StoredRound]:
            found = [one for one in rounds if before is None or one.decided.entry.step < before]  # type: ignore[union-attr]
            return found[::-1][:limit]

    async def main() -> None:
        store = Rounds()
        sessions = table(lambda: 1000.0)
        sessions.restore(store, store.open_game("homework", "", "{}"))
        found = {key: episode.decision.step for key, episode in sessions._open.items()}
        assert found == {"a": 4, "b": 5}

    asyncio.run(main())


def test_a_key_tells_nothing_and_mixes_nothing() -> None:
    """It depends on the secret, the caller and the name, and no two pairs are written alike."""
    keys = {
        session_key(secret, caller, name)
        for secret in (b"one", b"two")
        for caller, name in (("a", "b"), ("", "ab"), ("ab", ""), ('a", "b', ""))
    }
    assert len(keys) == 8
    assert all(len(key) == 32 for key in keys)


def test_snapshots_of_earlier_versions_can_be_read() -> None:
    """Savings without later requests have none, and those with some come back as they were."""
    savings = Savings()
    savings.follow(a_round(propensity=0.5), "expert", Usage(prompt=7, completion=10))
    savings.follow(a_round(call_expert=False), "draft", Usage(completion=3))
    again = Savings.from_json(json.loads(json.dumps(asdict(savings))))
    assert again == savings
    assert again.report().followed == savings.report().followed is not None
    entry = Resolved(1, 0.0)
    note = savings.with_late_tokens({"propensity": 1.0})
    again.add(entry, json.loads(json.dumps(note)))
    assert (again.followed, again.has_late) == (savings.late_followed, False)
    old = {name: value for name, value in asdict(Savings()).items() if name not in ("followed", "late_followed")}
    assert Savings.from_json(old) == Savings()
    with pytest.raises(SnapshotError):
        Savings.from_json({name: value for name, value in old.items() if name != "drafts"})
