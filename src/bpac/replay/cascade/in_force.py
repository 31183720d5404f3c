"""The rules and thresholds of a cascade that were in force, and their risk on a table."""

from typing import cast

import numpy as np

from bpac.replay.cascade.table import CascadeTable
from bpac.routing.cascade.rounds import CascadeRound
from bpac.routing.cascade.router import CascadeRouter
from bpac.routing.cascade.rules import Rule, values
from bpac.routing.decision import Decision


def answers_of(table: CascadeTable) -> list[list[tuple[float, ...]]]:
    """For each row and model, the uncertainty and the features of its answer."""
    numbers = np.concatenate((table.uncertainty[:, :, None], table.features()), axis=2).tolist()
    return [[tuple(answer) for answer in row] for row in numbers]


class InForce:
    """The rules and thresholds that were in force at any time."""

    def __init__(self) -> None:
        self._seen: dict[tuple[int, int], tuple[Rule, set[float]]] = {}

    def add(self, decision: Decision, router: CascadeRouter) -> None:
        """Note what was in force for a query, before its outcome is reported."""
        if decision.threshold > 0.0:
            number = cast(CascadeRound, decision.cascade).rule
            key = decision.epoch, number
            if key not in self._seen:
                self._seen[key] = router.bettor.rules[number], set()
            self._seen[key][1].add(decision.threshold)

    def largest_risk(self, table: CascadeTable) -> float:
        """The largest average loss on a table of any rule at any threshold that was in force."""
        answers = answers_of(table) if self._seen else []
        largest = 0.0
        for rule, thresholds in self._seen.values():
            found = np.array([values(rule, row) for row in answers])
            # Losses of the answers that the rule asks for, and 0 for the reference.
            losses = np.column_stack((table.loss[:, [stage - 1 for stage in rule.stages]], np.zeros(len(table))))
            for threshold in thresholds:
                below = np.column_stack((found < threshold, np.ones(len(table), dtype=np.bool_)))
                stops = below.argmax(axis=1)
                largest = max(largest, float(losses[np.arange(len(table)), stops].mean()))
        return largest
