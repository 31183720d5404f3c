"""Each kind of statement holds exactly where the measured figures say so."""

import math

import numpy as np
import pytest

from bpac.replay.studies.methods import RoutingMethod
from bpac.replay.studies.reporting.replay_results import METRICS, ReplayResult
from bpac.replay.studies.reporting.statements import (
    Breaks,
    CallsNearlyAlways,
    Close,
    Falls,
    Finding,
    Flat,
    Ordered,
    Printed,
    Statement,
    StaysBelow,
    mark_of,
)
from bpac.routing.policies import Paper

CALLS = "expert_call_rate"


def result(runs: int = 100, spread: float = 0.0, **values: float) -> ReplayResult:
    """A result whose metrics have these means at every step, and this standard deviation over the runs."""
    paths = np.zeros((runs, len(METRICS), 5))
    for metric, mean in values.items():
        signs = np.where(np.arange(runs) % 2, 1.0, -1.0) if runs > 1 else np.zeros(1)
        paths[:, METRICS.index(metric)] = mean + spread * signs[:, None]
    return ReplayResult(RoutingMethod("m", Paper(), 0.08), np.arange(1, 6), paths)


def holds(statement: Statement, **results: ReplayResult) -> bool:
    """Whether the statement holds for methods with these results on the stream ``s``."""
    return statement.check({("s", name): one for name, one in results.items()}).holds


@pytest.mark.parametrize(
    ("ours", "spread", "runs", "agrees"),
    [
        (0.4600, 0.08, 100, True),
        (0.4324 + 0.9 * 3 * 0.0819 * math.sqrt(2) / 10, 0.0819, 100, True),  # just within three standard errors
        (0.4324 + 1.1 * 3 * 0.0819 * math.sqrt(2) / 10, 0.0819, 100, False),  # just beyond
        (0.4324, 0.2, 100, False),  # the spread is more than twice the printed one
        (0.4324, 0.03, 100, False),  # or less than half of it
        (0.4324, 0.0, 1, True),  # one run has no spread
    ],
)
def test_a_printed_number_agrees_within_three_standard_errors(
    ours: float, spread: float, runs: int, agrees: bool
) -> None:
    """The printed standard deviation and the number of runs say how far two means may be apart."""
    statement = Printed("s", "m", CALLS, "43.24", "8.19")
    assert holds(statement, m=result(runs, spread, expert_call_rate=ours)) is agrees


def test_the_digits_of_the_print_are_its_precision() -> None:
    """0.03 stands for anything between 0.025 and 0.035; 0.0300 would not."""
    ours = result(empirical_risk=0.034)
    assert holds(Printed("s", "m", "empirical_risk", "0.03"), m=ours)
    assert not holds(Printed("s", "m", "empirical_risk", "0.0300"), m=ours)


def test_limits_are_compared_with_epsilon() -> None:
    """ER below 0.08 stays below, ER above breaks; one step above is enough to be above."""
    low, high = result(empirical_risk=0.07), result(empirical_risk=0.09)
    assert holds(StaysBelow("s", ("low",)), low=low)
    assert not holds(StaysBelow("s", ("low", "high")), low=low, high=high)
    assert holds(Breaks("s", "high"), high=high)
    assert not holds(Breaks("s", "low"), low=low)
    early = result(empirical_risk=0.07)
    early.paths[:, 0, 1] = 0.081
    assert not holds(StaysBelow("s", ("early",)), early=early)


def test_orders_and_distances_are_those_at_the_end() -> None:
    """Order, monotony, closeness and flatness each fail for figures that contradict them."""
    a, b, c = (result(expert_call_rate=rate) for rate in (0.3, 0.4, 0.41))
    three = {"a": a, "b": b, "c": c}
    assert holds(Ordered("s", CALLS, "a", ("b", "c"), "lowest", 0.05), **three)
    assert not holds(Ordered("s", CALLS, "b", ("a", "c"), "lowest"), **three)
    assert not holds(Ordered("s", CALLS, "b", ("c",), "lowest", 0.05), **three)
    assert holds(Falls("s", CALLS, ("c", "b", "a"), "falls"), **three)
    assert not holds(Falls("s", CALLS, ("b", "c", "a"), "falls"), **three)
    assert holds(Close("s", CALLS, "b", "c", 0.02, "close"), **three)
    assert not holds(Close("s", CALLS, "a", "c", 0.02, "close"), **three)
    assert holds(Flat("s", CALLS, ("b", "c"), 0.02, "flat"), **three)
    assert not holds(Flat("s", CALLS, ("a", "b", "c"), 0.02, "flat"), **three)
    assert holds(CallsNearlyAlways("s", "always", "always"), always=result(expert_call_rate=0.96))
    assert not holds(CallsNearlyAlways("s", "a", "always"), **three)


def test_a_mark_names_the_reason_of_a_difference() -> None:
    """One statement that does not hold is a difference; its reason is that of the statement, or too few runs."""
    good, bad = Finding("x", "", "", holds=True), Finding("y", "", "", holds=False)
    known = Finding("z", "", "", holds=False, because="the model is another one")
    assert mark_of([good], 1).words == "agrees"
    assert mark_of([good, known], 100).words == "differs, because the model is another one"
    assert mark_of([good, bad], 10).words == "differs, because only 10 runs were made, where the paper made 100"
    assert "“y” does not hold here, and no reason is known" in mark_of([good, known, bad], 100).words
