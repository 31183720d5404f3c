"""Streams of a simulation: what is drawn, the gateway that it is sent through, and the risk of what was in force."""

from collections.abc import Callable, Iterable
from typing import Protocol, runtime_checkable

import numpy as np

from bpac.replay.simulation.fault_rules import FaultRules
from bpac.replay.simulation.gateway import SimulatedGateway
from bpac.replay.simulation.laws import Law, dithered_risk
from bpac.routing.decision import Decision
from bpac.routing.router import Router


class Stream(Protocol):
    """The queries of one stream."""

    @property
    def rounds(self) -> Iterable[tuple[float, float]]:
        """Uncertainty and loss of every query, in the order of arrival, as far as events depend on them."""

    def gateway(
        self, router: Router, *, tickets: bool, rules: FaultRules, rebuild: Callable[[], Router]
    ) -> SimulatedGateway:
        """A gateway with this router, which knows the answers to the queries."""

    def decided(self, decision: Decision, router: Router) -> None:
        """Note what was in force for a query, before its outcome is reported."""

    def largest_risk(self) -> float:
        """The largest true risk of anything that was in force, without the factor κ."""


@runtime_checkable
class Streams(Protocol):
    """A distribution of queries from which streams are drawn."""

    def start(self, steps: int, rng: np.random.Generator) -> Stream:
        """Draw a stream of so many queries."""


class PairStream:
    """A stream of drafts, each with its uncertainty and loss.

    Parameters
    ----------
    law: distribution of the drafts.
    steps: number of queries.
    rng: random source.
    """

    def __init__(self, law: Law, steps: int, rng: np.random.Generator) -> None:
        uncertainties, losses = (column.tolist() for column in law.draw(steps, rng))
        self.rounds: Iterable[tuple[float, float]] = zip(uncertainties, losses, strict=True)
        self._law = law
        self._highest = self._dither = 0.0

    def gateway(
        self, router: Router, *, tickets: bool, rules: FaultRules, rebuild: Callable[[], Router]
    ) -> SimulatedGateway:
        """A gateway with this router."""
        self._dither = getattr(router.settings.policy, "dither", 0.0)
        return SimulatedGateway(router, tickets=tickets, rules=rules, rebuild=rebuild)

    def decided(self, decision: Decision, router: Router) -> None:
        """Risk never falls with the threshold, so that it is enough to note the highest one."""
        self._highest = max(self._highest, decision.threshold)

    def largest_risk(self) -> float:
        """The true risk of the highest threshold that was in force."""
        return dithered_risk(self._law, self._highest, self._dither)
