"""Scores that are not worth their share of α: what was kept for them goes back to the score that was there first."""

import json

import numpy as np
import pytest

from bpac import Router
from bpac.replay.simulation.delays import Delay
from bpac.replay.simulation.drafting import Drafting
from bpac.replay.simulation.gateway import SimulatedGateway
from bpac.replay.simulation.load import under_load
from bpac.routing.audit.audit import audit_journal
from bpac.routing.journal.entries import Entry, Learned, entry_from_json, entry_to_json
from bpac.routing.learning.learned_score import LearnedScore
from tests.routing.learning.drafts import drafts, learner, send


@pytest.mark.parametrize("tickets", [False, True])
def test_without_a_gain_what_was_kept_goes_back_to_the_first_score(tickets: bool) -> None:
    """The entry says so, decisions carry the score twice, and journal, snapshot and audit agree."""
    entries: list[Entry] = []
    learn = LearnedScore(("length", "task"), fit_at=(60, 240), shares=(0.2, 0.1), least_losses=5.0, least_gain=1.0)
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
    (entry,) = [entry for entry in entries if isinstance(entry, Learned)]
    assert entry.model is None
    first, none = router.scores()
    assert first.share == pytest.approx(1.0)
    assert (none.share, none.in_force) == (0.0, False)
    assert first.threshold > 0.0
    decision = router.decide(0.99, features=rows[0].features)
    assert decision.uncertainties == (0.99, 0.99)
    assert not router.worth_grading(decision)
    router.forfeit(decision)
    lines = [entry_to_json(entry) + "\n" for entry in entries]
    read = [entry_from_json(line) for line in lines]
    assert Router.rebuild(read).snapshot() == router.snapshot()
    half = Router.rebuild(read[:700])
    assert Router.rebuild(read[700:], snapshot=json.loads(json.dumps(half.snapshot()))).snapshot() == router.snapshot()
    assert audit_journal(lines).differences == []


def test_too_few_losses_end_the_wait_for_a_score() -> None:
    """After twice the audits that a fit needs there is nothing to learn from, and what was kept goes back."""
    entries: list[Entry] = []
    router = learner(entries.append, learn=LearnedScore(("length", "task"), fit_at=(60,), least_losses=50.0))
    send(router, [row._replace(loss=0.0) for row in drafts(1500)])
    (entry,) = [entry for entry in entries if isinstance(entry, Learned)]
    assert (entry.model, entry.rounds, entry.gain) == (None, 120, 0.0)
