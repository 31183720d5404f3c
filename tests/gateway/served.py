"""Whether what callers got follows from the journal."""

from collections.abc import Iterable
from contextlib import closing

from bpac.gateway.games.rounds.decision_ids import read_decision_id
from bpac.routing.decision import Decision
from bpac.routing.journal.entries import Entry, Resolved
from bpac.stores import open_store
from tests.gateway.law import Seen


def journal_at(address: str) -> list[Entry]:
    """The journal of the one game of a store."""
    with closing(open_store(address, read_only=True)) as store:
        (game,) = store.games()
        return [kept.entry for kept in store.entries(game)]


def steps_served(address: str, seen: Iterable[Seen]) -> list[int]:
    """The rounds that callers got answers of, all different.

    Every answer follows from the journal, nothing was lost, and every audit has exactly one outcome. An answer without
    a round is the expert's.
    """
    entries = journal_at(address)
    decided = {entry.step: entry for entry in entries if isinstance(entry, Decision)}
    assert list(decided) == list(range(1, len(decided) + 1))
    steps: list[int] = []
    with closing(open_store(address, read_only=True)) as store:
        for answer in seen:
            if answer.headers["x-bpac-decision"] == "unscored":
                assert not answer.kept
                continue
            named = read_decision_id(answer.headers["x-bpac-decision"], store)
            assert named is not None
            decision = decided[named[1]]
            assert float(answer.headers["x-bpac-uncertainty"]) == decision.uncertainty
            assert float(answer.headers["x-bpac-threshold"]) == decision.threshold
            assert answer.kept == decision.serve_draft
            steps.append(decision.step)
        assert store.losses() == []
    assert len(set(steps)) == len(steps)
    resolved = [entry.step for entry in entries if isinstance(entry, Resolved)]
    assert len(set(resolved)) == len(resolved)
    assert set(resolved) == {step for step, decision in decided.items() if decision.call_expert}
    return steps
