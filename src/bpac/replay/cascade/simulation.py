"""Cascades in simulations: a gateway that asks the models one after the other, and streams of recorded answers."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from bpac.replay.cascade.in_force import InForce, answers_of
from bpac.replay.cascade.table import CascadeTable
from bpac.replay.simulation.events import Drafted
from bpac.replay.simulation.fault_rules import FaultRules
from bpac.replay.simulation.gateway import FAULT_RULES, SimulatedGateway
from bpac.routing.cascade.rounds import CascadeRound, StageAnswer
from bpac.routing.cascade.router import CascadeRouter
from bpac.routing.decision import Decision
from bpac.routing.router import Router
from bpac.routing.tickets.ticket import Ticket


class SimulatedCascade(SimulatedGateway):
    """A gateway whose queries are the rows of a table of a cascade.

    All models that a query asks before it is decided take their time together: the event ``Drafted`` says that the last
    of them has answered.

    Parameters
    ----------
    router: a fresh router.
    table: the answers to the queries of the stream, in the order of arrival.
    tickets, rules, rebuild: as for every simulated gateway.
    """

    def __init__(
        self,
        router: CascadeRouter,
        table: CascadeTable,
        *,
        tickets: bool,
        rules: FaultRules = FAULT_RULES,
        rebuild: Callable[[], Router] | None = None,
    ) -> None:
        super().__init__(router, tickets=tickets, rules=rules, rebuild=rebuild)
        self._answers = answers_of(table)
        self._losses: list[list[float]] = table.loss.tolist()
        # An attacker's query looks as sure as a query can.
        self._attack: Sequence[StageAnswer] = [(0.0,) * (1 + table.features().shape[2])] * (table.stages - 1)

    def served_loss(self, event: Drafted, decision: Decision) -> float:
        """The loss of the answer that was accepted."""
        return self._losses[event.row - 1][cast(CascadeRound, decision.cascade).stage - 1]

    def _answers_to(self, event: Drafted) -> Sequence[StageAnswer]:
        return self._answers[event.row - 1] if event.row else self._attack

    def _decide(self, event: Drafted, ticket: Ticket | None) -> Decision:
        answers = self._answers_to(event)
        walk = cast(CascadeRouter, self.router).walk(ticket)
        while (stage := walk.next_stage) is not None:
            walk.answered(*cast(tuple[float, ...], answers[stage - 1]))
        return self.router.decide(walk, ticket=ticket)

    def _observe(self, audit: Decision, event: Drafted, loss: float) -> None:
        asked = asked_stages(cast(CascadeRound, audit.cascade))
        cast(CascadeRouter, self.router).observe_stages(
            audit,
            [answer if known else () for answer, known in zip(self._answers_to(event), asked, strict=True)],
            [one if known else None for one, known in zip(self._losses[event.row - 1], asked, strict=True)],
        )


def asked_stages(part: CascadeRound) -> list[bool]:
    """Which of the models before the last were asked, those of an audit included."""
    return [part.full or answer != () for answer in part.answers]


def timed_rounds(table: CascadeTable) -> Iterable[tuple[float, float]]:
    """What the times of events depend on: for each query, the largest loss of any answer; the score is not used."""
    return ((0.0, loss) for loss in table.loss.max(axis=1).tolist())


class CascadeStream:
    """A stream of queries to a cascade.

    Parameters
    ----------
    population: the answers from which the stream was drawn.
    table: the answers to the queries of the stream.
    """

    def __init__(self, population: CascadeTable, table: CascadeTable) -> None:
        self.rounds = timed_rounds(table)
        self._population = population
        self._table = table
        self._in_force = InForce()

    def gateway(
        self, router: Router, *, tickets: bool, rules: FaultRules, rebuild: Callable[[], Router]
    ) -> SimulatedCascade:
        """A gateway with this router, which knows the answers to the queries."""
        cascade = cast(CascadeRouter, router)
        return SimulatedCascade(cascade, self._table, tickets=tickets, rules=rules, rebuild=rebuild)

    def decided(self, decision: Decision, router: Router) -> None:
        """Note the rule and the threshold that were in force for a query."""
        self._in_force.add(decision, cast(CascadeRouter, router))

    def largest_risk(self) -> float:
        """The largest true risk of any rule at any threshold that was in force."""
        return self._in_force.largest_risk(self._population)


@dataclass(frozen=True, slots=True)
class CascadeStreams:
    """The rows of a table, drawn with replacement, so that their averages are the true risks.

    Parameters
    ----------
    table: the recorded answers.
    """

    table: CascadeTable

    def start(self, steps: int, rng: np.random.Generator) -> CascadeStream:
        """Draw a stream of so many queries."""
        return CascadeStream(self.table, self.table.take(rng.integers(len(self.table), size=steps)))
