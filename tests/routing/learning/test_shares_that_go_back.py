"""Scores that are not worth their share of α: what was kept for them goes back to the score that was there first."""

import json
from dataclasses import replace

import numpy as np
import pytest

from bpac import Router
from bpac.replay.simulation.delays import Delay
from bpac.replay.simulation.drafting import Drafting
from bpac.replay.simulation.gateway import SimulatedGateway
from bpac.replay.simulation.load import under_load
from bpac.routing.audit.audit import audit_journal
from bpac.routing.journal.entries import Entry, Learned
from bpac.routing.journal.entry_lines import entry_from_json, entry_to_json
from bpac.routing.learning.learned_score import LearnedScore
from tests.routing.learning.drafts import drafts, learner, send

LEARN = LearnedScore(("length", "task"), fit_at=(60, 240), shares=(0.2, 0.1), least_losses=5.0, least_gain=1.0)


@pytest.mark.parametrize("tries_all", [False, True])
@pytest.mark.parametrize("tickets", [False, True])
def test_without_a_gain_what_was_kept_goes_back_to_the_first_score(tickets: bool, tries_all: bool) -> None:
    """Entries say so, decisions carry the score in place of each, and journal, snapshot and audit agree.

    Where all fits are tried each gives its own share back; otherwise the first gives back all of them.
    """
    entries: list[Entry] = []
    learn = replace(LEARN, tries_all=tries_all)
    router = learner(entries.append, learn=learn)
    rows = drafts(900)
    if tickets:
        gateway = SimulatedGateway(router, tickets=True, features=[row.features for row in rows])
        rounds = ((row.uncertainty, row.loss) for row in rows)
        rng = np.random.default_rng(0)
        for event in under_load(rounds, Drafting.parse("losses:3", 24), Delay.parse("losses:15"), rng):
            gateway.handle(event)
    else:
        send(router, rows)
    learned = [entry for entry in entries if isinstance(entry, Learned)]
    assert [(entry.score, entry.model) for entry in learned] == [(1, None), (2, None)][: 1 + tries_all]
    first, *others = router.scores()
    assert first.share == pytest.approx(1.0)
    assert [(none.share, none.in_force) for none in others] == [(0.0, False)] * len(learned)
    assert first.threshold > 0.0
    decision = router.decide(0.99, features=rows[0].features)
    assert decision.uncertainties == (0.99,) * (1 + len(learned))
    assert not router.worth_grading(decision)
    router.forfeit(decision)
    lines = [entry_to_json(entry) + "\n" for entry in entries]
    read = [entry_from_json(line) for line in lines]
    assert Router.rebuild(read).snapshot() == router.snapshot()
    half = Router.rebuild(read[:700])
    assert Router.rebuild(read[700:], snapshot=json.loads(json.dumps(half.snapshot()))).snapshot() == router.snapshot()
    assert audit_journal(lines).differences == []


def test_a_model_may_join_after_one_that_was_not_worth_its_share() -> None:
    """The first fit knows too little; the second has its own share, and the first score has what came back."""
    entries: list[Entry] = []
    router = learner(entries.append, learn=replace(LEARN, least_gain=0.1))
    nothing = [row._replace(features=(None, None)) for row in drafts(62)]
    send(router, [*nothing, *drafts(1200, seed=2)])
    assert [entry.model is None for entry in entries if isinstance(entry, Learned)] == [True, False]
    assert [score.share for score in router.scores()] == pytest.approx([0.9, 0.0, 0.1])
    assert router.scores()[2].in_force
    lines = [entry_to_json(entry) + "\n" for entry in entries]
    assert Router.rebuild(map(entry_from_json, lines)).snapshot() == router.snapshot()
    assert Router.rebuild([], snapshot=json.loads(json.dumps(router.snapshot()))).snapshot() == router.snapshot()
    assert audit_journal(lines).differences == []


def test_too_few_losses_end_the_wait_for_a_score() -> None:
    """After twice the audits that a fit needs there is nothing to learn from, and what was kept goes back."""
    entries: list[Entry] = []
    router = learner(entries.append, learn=LearnedScore(("length", "task"), fit_at=(60,), least_losses=50.0))
    send(router, [row._replace(loss=0.0) for row in drafts(1500)])
    (entry,) = [entry for entry in entries if isinstance(entry, Learned)]
    assert (entry.model, entry.rounds, entry.gain) == (None, 120, 0.0)
