"""Simulations of cascades: late outcomes, queries in flight and faults, with the events that pairs have."""

from typing import Any

import numpy as np
import pytest

from bpac.replay.cascade.builtin import CASCADES, builtin_cascade
from bpac.replay.cascade.replay import CascadeReplay
from bpac.replay.cascade.simulation import CascadeStreams
from bpac.replay.cascade.table import CascadeTable
from bpac.replay.router_factory import CascadeRouterFactory
from bpac.replay.simulation.delays import Delay
from bpac.replay.simulation.drafting import Drafting
from bpac.replay.simulation.faults import Faults
from bpac.replay.validation import Validation
from bpac.routing.cascade.policy import Cascade
from tests.promise.test_promise import most_explained

STREAMS = 40
# All answers of a model have one score, and the risk of accepting the first is just above ε = 0.2.
EDGE = CascadeTable(np.full((1000, 2), 0.5), np.array([[float(row < 215), float(row < 215)] for row in range(1000)]))
POLICY = Cascade(prices=(1.0, 2.0, 8.0), memory="latched", first=((1,),), fit_at=(), fitted_shares=())


def violations(streams: int = STREAMS, **settings: Any) -> int:
    """In how many streams a threshold was in force whose risk exceeds ε."""
    validation = Validation(CascadeRouterFactory(POLICY, 0.2, 0.1), CascadeStreams(EDGE), 400, **settings)
    return sum("threshold" in validation.stream(seed).broken for seed in range(streams))


def test_the_promise_holds_under_load_and_breaks_without_tickets() -> None:
    """Queries that lose take longer: counted in the order in which they end, they break the promise."""
    assert violations(drafting=Drafting.parse("losses:3", 64)) <= most_explained(STREAMS, 0.1)
    assert violations(drafting=Drafting.parse("losses:3", 64, tickets=False)) > most_explained(STREAMS, 0.1)


@pytest.mark.parametrize("faults", ["outage-draft,outage-expert,outage-grader", "refusals,crash:300"])
def test_the_promise_holds_with_faults_and_late_outcomes(faults: str) -> None:
    """Outages, refusals that an attacker provokes, and crashes in which the router is rebuilt from its journal."""
    many = {"drafting": Drafting.parse("losses:3", 8), "delay": Delay.parse("losses:20")}
    assert violations(16, faults=Faults.parse(faults), **many) <= most_explained(16, 0.1)


def test_every_promise_can_be_counted() -> None:
    """Bets at a level of nearly 1 accept too much, which is served; at the usual level the certificate is right."""
    settings: dict[str, Any] = {"law": CascadeStreams(EDGE), "steps": 400, "delay": Delay.parse("lost:0.1")}
    greedy = Validation(CascadeRouterFactory(POLICY, 0.05, 0.999), **settings).stream(1)
    assert sorted(greedy.broken) == ["served", "threshold"]
    assert greedy.rounds == 400
    usual = Validation(CascadeRouterFactory(POLICY, 0.2, 0.1), **settings, certificate=True)
    assert sum("certificate" in usual.stream(seed).broken for seed in range(10)) <= most_explained(10, 0.1)


def replayed(**settings: Any) -> CascadeReplay:
    """Replays of a built-in cascade."""
    table = builtin_cascade("effort-like", rows=1500)
    return CascadeReplay(table, Cascade(prices=CASCADES["effort-like"].prices), 0.1, **settings)


def test_late_and_lost_outcomes_and_queries_in_flight_cost_calls() -> None:
    """Each of them makes the cascade more expensive; runs of equal numbers are equal."""
    at_once = replayed().run(0)
    settings: list[dict[str, Any]] = [
        {"delay": Delay.parse("losses:100")},
        {"delay": Delay.parse("lost:0.3")},
        {"drafting": Drafting.parse("losses:3", 256)},
    ]
    for given in settings:
        once, again = replayed(**given).run(0), replayed(**given).run(0)
        assert (once.cost, once.answered) == (again.cost, again.answered)
        assert once.cost > at_once.cost
        assert sum(once.answered) == pytest.approx(1.0)
