"""The promise with many replicas: one game with a stale published threshold keeps it, a game for each breaks it."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from bpac import Router
from bpac.errors import InputError
from bpac.replay.router_factory import RouterFactory
from bpac.replay.simulation.delays import Delay
from bpac.replay.simulation.laws import LAWS
from bpac.replay.simulation.replicas import SeparateReplicas, SharingReplicas
from bpac.routing.audit.audit import audit_journal
from bpac.routing.coins import SeededCoins
from bpac.routing.decision import Decision
from bpac.routing.journal.entries import Entry
from bpac.routing.policies import Portfolio
from tests.promise.test_promise import most_explained
from tests.routing.exports import Export

pytestmark = pytest.mark.promise

ALPHA, STREAMS = 0.1, 30
MAKE_ROUTER = RouterFactory(Portfolio(), 0.1, ALPHA)
# As many requests as are needed for thresholds to open, with terms that are hundreds of decisions old.
SHARED = SharingReplicas(MAKE_ROUTER, LAWS["rising"], replicas=1000, requests=2500, publish_every=50, refresh_every=500)


def test_a_thousand_replicas_with_stale_thresholds_keep_the_promise() -> None:
    """Not more streams than α explains have an unsafe threshold, and drafts are served."""
    results = [SHARED.stream(seed) for seed in range(STREAMS)]
    assert sum(result.unsafe for result in results) <= most_explained(STREAMS, ALPHA)
    assert np.mean([result.age for result in results]) > 200
    assert np.mean([result.expert_call_rate for result in results]) < 0.95


def test_replicas_that_certify_from_their_own_view_break_the_promise() -> None:
    """With the same α for each, some replica nearly always has an unsafe threshold; one replica alone has not."""
    many = SeparateReplicas(MAKE_ROUTER, LAWS["rising"], replicas=1000)
    assert sum(many.stream(seed).unsafe for seed in range(12)) >= 11
    alone = SeparateReplicas(MAKE_ROUTER, LAWS["rising"], replicas=1)
    assert sum(alone.stream(seed).unsafe for seed in range(STREAMS)) <= most_explained(STREAMS, ALPHA)


def test_an_auditor_accepts_the_journal_of_a_thousand_replicas() -> None:
    """Every decision has the threshold and rate of the state that its replica had seen, however old, and no other."""
    export = Export()
    decisions: list[Decision] = []

    def write(entry: Entry) -> None:
        export.write(entry)
        if isinstance(entry, Decision):
            decisions.append(entry)

    SHARED.stream(3, write)
    audit = audit_journal(export.lines)
    assert audit.rounds == SHARED.requests
    assert audit.differences == []
    assert max(one.threshold for one in decisions) > 0.0
    seen = [one.seen for one in decisions]
    assert sum(later < earlier for earlier, later in pairwise(seen)) > 100, "replicas differ in age"


def test_fresh_terms_and_one_request_at_a_time_are_the_router_itself() -> None:
    """Then the simulation decides to the bit as the router does."""
    game = SharingReplicas(
        MAKE_ROUTER,
        LAWS["rising"],
        replicas=1,
        requests=600,
        in_flight=1,
        publish_every=1,
        refresh_every=1,
        draft_time="none",
        delay=Delay(),
    )
    entries: list[Entry] = []
    game.stream(5, entries.append)
    made = [entry for entry in entries if isinstance(entry, Decision)]
    rng = np.random.default_rng(5)
    uncertainties, losses = (column.tolist() for column in game.law.draw(game.requests, rng))
    rng.integers(1, size=600)
    rng.integers(1, size=1)
    router = MAKE_ROUTER(SeededCoins(int(rng.integers(1 << 63))))
    for uncertainty, loss, decision in zip(uncertainties, losses, made, strict=True):
        ticket = router.arrive()
        own = router.decide(uncertainty, ticket=ticket)
        assert own == decision
        if own.call_expert:
            router.observe(own, loss)
    assert router.threshold > 0.0
    assert Router.rebuild(entries).threshold == router.threshold


@pytest.mark.parametrize("name", ["replicas", "requests", "publish_every", "refresh_every"])
def test_counts_must_be_positive(name: str) -> None:
    """The error names the setting."""
    wrong: dict[str, Any] = {name: 0}
    with pytest.raises(InputError, match=name):
        replace(SHARED, **wrong)
