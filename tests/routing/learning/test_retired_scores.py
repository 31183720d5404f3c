"""Scores that have nothing left to gain retire: they bet no more."""

from collections.abc import Callable
from dataclasses import replace
from itertools import cycle
from typing import Any, cast

import pytest

from bpac import Router
from bpac.routing.audit.audit import audit_journal
from bpac.routing.bettors import Candidates
from bpac.routing.bettors.candidates import NoWealth
from bpac.routing.decision import Decision
from bpac.routing.journal.entries import Entry
from bpac.routing.journal.entry_lines import entry_from_json, entry_to_json
from bpac.routing.learning.learning import Learning
from tests.routing.learning.drafts import LEARN, candidates, drafts, learner, send

ROWS = drafts(9000)
# In the end the second of these is in force.
TWO = replace(LEARN, shares=(0.1, 0.2))


def learning(router: Router) -> Learning:
    """What it has learned."""
    found = router._route.learning
    assert found is not None
    return found


def until(router: Router, happened: Callable[[Candidates], Any]) -> None:
    """Send drafts until something has happened."""
    remaining = cycle(ROWS)
    while not happened(candidates(router)):
        send(router, [next(remaining)])


def test_scores_retire_when_the_one_in_force_is_as_good() -> None:
    """In the end the one in force is left alone, and the others keep their share of α: it has been bet."""
    router = learner(learn=TWO)
    send(router, [*ROWS, *ROWS])
    standings = router.scores()
    assert [standing.retired for standing in standings] == [not standing.in_force for standing in standings]
    assert all(standing.share > 0.0 for standing in standings)
    assert [isinstance(wealth, NoWealth) for wealth in candidates(router).wealths] == [
        standing.retired for standing in standings
    ]
    assert router.threshold > 0.0


@pytest.mark.parametrize("task", ["task 1", "Aufgabe über Körper"])  # words that are not ASCII take the longer way
def test_a_retired_score_bets_on_nothing_and_is_not_computed(task: str) -> None:
    """A 1 stands in its place, which no threshold accepts; the scores that bet are what their models say."""
    router = learner(learn=TWO)
    until(router, lambda bettor: bettor.absent - {0})
    before = router.scores()
    decision = router.decide(0.25, features=(1.5, task))
    models = [joined.model for joined in learning(router).joined]
    expected = [
        1.0 if standing.retired else model.score((0.25, 1.5, task))
        for standing, model in zip(before[1:], models, strict=True)
    ]
    assert decision.uncertainties == (0.25, *expected)
    assert 1.0 in expected
    send(router, ROWS[-300:])
    for was, now in zip(before, router.scores(), strict=True):
        if was.retired:
            assert (now.retired, now.threshold, now.in_force) == (True, 0.0, False)


def test_a_query_that_arrived_on_a_retired_score_is_decided_by_it() -> None:
    """Its threshold was certified for that score, and for no other."""
    router = learner()
    until(router, lambda bettor: bettor.active == 1)
    early, bettor = router.arrive(), candidates(router)
    bettor.active = 2 if len(bettor.wealths) > 2 else 0
    bettor.retire(1)
    learning(router).retire(bettor.absent)
    decision = router.decide(0.25, features=(0.5, "task 1"), ticket=early)
    model = learning(router).joined[0].model
    assert (decision.threshold, decision.uncertainty) == (early.threshold, model.score((0.25, 0.5, "task 1")))
    assert decision.uncertainties[1] == decision.uncertainty < 1.0
    assert decision.threshold > 0.0
    later = router.decide(0.25, features=(0.5, "task 1"), ticket=router.arrive())
    assert later.uncertainty == later.uncertainties[bettor.active] != decision.uncertainty
    assert later.uncertainties[1] == 1.0


@pytest.mark.parametrize(
    ("of", "value", "found"), [("retired", 0.5, True), ("betting", 1.0, True), ("retired", 1.0, False)]
)
def test_an_audit_finds_scores_that_are_wrong(of: str, value: float, found: bool) -> None:
    """A 1 may stand in place of a score that has retired, and of no other."""
    entries: list[Entry] = []
    router = learner(entries.append, learn=TWO)
    until(router, lambda bettor: bettor.absent - {0})
    step = len(entries)
    send(router, ROWS[:40])
    retired = [standing.retired for standing in router.scores()]
    score = retired.index(of == "retired", 1)
    kept = next(at for at in range(step, len(entries)) if isinstance(entries[at], Decision))
    decision = cast(Decision, entries[kept])
    scores = decision.uncertainties
    entries[kept] = decision._replace(uncertainties=(*scores[:score], value, *scores[score + 1 :]))
    differences = audit_journal(map(entry_to_json, entries)).differences
    assert any("scores of step" in difference.what for difference in differences) == found


@pytest.mark.parametrize("tickets", [False, True])
def test_a_journal_and_a_snapshot_lead_to_the_same_state(tickets: bool) -> None:
    """Who retires follows from the entries; a router that starts again goes on as the other does."""
    entries: list[Entry] = []
    router = learner(entries.append, learn=TWO)
    for rows in ([*ROWS, *ROWS[:5000]], ROWS[-500:]):
        send(router, rows, tickets=tickets)
        assert candidates(router).absent - {0}
        rebuilt = Router.rebuild(entries)
        assert rebuilt.snapshot() == router.snapshot()
        loaded = Router.rebuild([], snapshot=router.snapshot())
        assert loaded.snapshot() == router.snapshot()
        assert candidates(loaded).absent == candidates(router).absent
        assert learning(loaded).retired == learning(rebuilt).retired == learning(router).retired
    assert not audit_journal(map(entry_to_json, entries)).differences


def test_the_first_score_stays_while_shares_may_go_back_to_it() -> None:
    """A fit that is not worth its share gives it to the first score, which must be there to bet it."""
    late = replace(LEARN, fit_at=(60, 100_000), shares=(0.2, 0.1))
    router = learner(learn=late)
    send(router, ROWS)
    assert candidates(router).active == 1
    assert not candidates(router).absent


def test_games_that_began_before_keep_all_scores() -> None:
    """A journal of that time does not say that scores retire."""
    entries: list[Entry] = []
    old = learner(entries.append, learn=replace(LEARN, retires=False))
    assert "retires" not in entry_to_json(entries[0])
    send(old, ROWS)
    assert not candidates(old).absent
    read = [entry_from_json(entry_to_json(entry), 1) for entry in entries]
    assert Router.rebuild(read).snapshot() == old.snapshot()


def test_an_alarm_brings_all_scores_back() -> None:
    """After it nothing is known: the first score bets again, and others are learned anew."""
    router = learner()
    send(router, ROWS)
    assert candidates(router).absent
    spoiled = ((draft.uncertainty, draft.features) for draft in ROWS)
    while router.epoch == 1:
        uncertainty, features = next(spoiled)
        decision = router.decide(uncertainty, features=features)
        if decision.call_expert:
            router.observe(decision, 1.0)
    assert not candidates(router).absent
    send(router, ROWS[:500])
    assert len(router.scores()) > 1
