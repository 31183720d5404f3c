"""The journal of a cascade rebuilds its router to the same bits, whatever happened."""

import random
from typing import Any

import pytest

from bpac import entry_from_json, entry_to_json
from bpac.routing.cascade.router import CascadeRouter
from bpac.routing.journal.entries import Fitted
from bpac.routing.journal.snapshot import verify_snapshot
from tests.routing.cascade.gateways import journalled, serve

VARIANTS: list[dict[str, Any]] = [
    {},
    {"memory": "revocable"},
    {"memory": "latched", "explore": "shadow"},
    {"first": ((1, 2),)},
    {"spread": 0.25, "fractions": (0.2, 0.5), "floor_fractions": (0.4, 0.9)},
    {"first": ((1, 2), (2,)), "fit_at": (), "fitted_shares": ()},
]


@pytest.mark.parametrize("tickets", [True, pytest.param(False, marks=pytest.mark.no_cover)])
@pytest.mark.parametrize("changes", VARIANTS)
def test_the_journal_rebuilds_the_router_to_the_same_bits(changes: dict[str, Any], tickets: bool) -> None:
    """Rebuilt from the lines of its journal, or from a snapshot and the rest, a router has the same state."""
    router, entries = journalled(**changes)
    dice = random.Random(7)
    serve(router, 250, dice, tickets=tickets)
    snapshot, seen = router.snapshot(), len(entries)
    assert snapshot["entries"] == seen
    serve(router, 350, dice, tickets=tickets)
    lines = [entry_to_json(entry) for entry in entries]
    again = [entry_from_json(line, number) for number, line in enumerate(lines, start=1)]
    assert CascadeRouter.rebuild(again).snapshot() == router.snapshot()
    assert CascadeRouter.rebuild(again[seen:], snapshot=snapshot).snapshot() == router.snapshot()
    verify_snapshot(router.snapshot(), again)


def test_fitted_rules_join_and_are_used() -> None:
    """The stream of these tests fits rules, certifies thresholds and answers at every stage."""
    router, entries = journalled()
    serve(router, 900, random.Random(3))
    assert sum(isinstance(entry, Fitted) for entry in entries) == 2
    assert router.threshold > 0.0
    assert sum(router.answered.values()) == router.step
    assert len([count for count in router.answered.values() if count]) > 1


@pytest.mark.no_cover
def test_a_crash_charges_the_earliest_query_under_way() -> None:
    """A router that is rebuilt with tickets under way goes on, and the cut is in its journal."""
    router, entries = journalled()
    serve(router, 200, random.Random(5))
    before = router.threshold
    rebuilt = CascadeRouter.rebuild(entries, seed=2, journal=entries.append)
    serve(rebuilt, 200, random.Random(6))
    assert before >= 0.0
    assert CascadeRouter.rebuild(entries).snapshot() == rebuilt.snapshot()


def test_drift_starts_a_new_epoch_in_which_rules_are_fitted_again() -> None:
    """After the alarm the wealths and rules are forgotten; old tickets are decided by the reference."""
    router, entries = journalled(fit_at=(40,), fitted_shares=(0.8,))
    serve(router, 1000, random.Random(2), hard_from=300, failing=0.0)
    assert router.epoch > 1
    assert CascadeRouter.rebuild(entries).snapshot() == router.snapshot()
    plain, lines = journalled(fit_at=(40,), fitted_shares=(0.8,))
    serve(plain, 1000, random.Random(2), hard_from=300, failing=0.0, tickets=False)
    assert plain.epoch > 1
    assert CascadeRouter.rebuild(lines).snapshot() == plain.snapshot()
