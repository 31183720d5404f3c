"""Streams of recorded drafts with features, for routers that learn scores on the way.

1. Queries are rows of a table, drawn with replacement: so the average loss over the table is the true risk of any
   threshold, of the score that was there first and of every score that is learned.
2. A threshold belongs to the score that it was in force with. The models are frozen, so that their scores of all rows
   of the table can be computed when the stream has ended.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bpac.replay.simulation.fault_rules import FaultRules
from bpac.replay.simulation.gateway import SimulatedGateway
from bpac.replay.simulation.laws import RecordedLaw, dithered_risk
from bpac.replay.tables.table import Table
from bpac.routing.decision import Decision
from bpac.routing.dithering import dithered
from bpac.routing.learning.features import Feature, checked_features
from bpac.routing.learning.model import FrozenModel, OwnScore
from bpac.routing.router import Router

# Draws over which the risk of a learned score is averaged where the first score is dithered.
DITHERS = 32
Models = tuple[FrozenModel | OwnScore, ...]


@dataclass(frozen=True, slots=True, eq=False)
class RecordedStreams:
    """Recorded drafts with their features, drawn with replacement.

    Parameters
    ----------
    table: the recorded answers; it has features.
    """

    table: Table

    def start(self, steps: int, rng: np.random.Generator) -> "RecordedStream":
        """Draw a stream of so many queries."""
        return RecordedStream(self.table, rng.integers(len(self.table), size=steps))


class RecordedStream:
    """A stream of recorded drafts.

    Parameters
    ----------
    table: the recorded answers.
    rows: the row of each query.
    """

    def __init__(self, table: Table, rows: NDArray[np.int64]) -> None:
        drawn = (table.uncertainty[rows].tolist(), table.loss[rows].tolist())
        self.rounds: Iterable[tuple[float, float]] = zip(*drawn, strict=True)
        self._table = table
        self._rows: list[int] = rows.tolist()
        self._known: list[tuple[Feature, ...]] = []
        self._dither = 0.0
        # The highest threshold of each score, by epoch and index, and the models of each epoch as far as they joined.
        self._highest: dict[tuple[int, int], float] = {}
        self._models: dict[int, Models] = {}

    def gateway(
        self, router: Router, *, tickets: bool, rules: FaultRules, rebuild: Callable[[], Router]
    ) -> SimulatedGateway:
        """A gateway with this router, which knows the features of every query."""
        policy = router.settings.policy
        self._dither = getattr(policy, "dither", 0.0)
        names = policy.learned.features if policy.learned is not None else ()
        columns = [self._table.features[name].tolist() for name in names]
        self._known = [checked_features(row, names) for row in zip(*columns, strict=True)]
        features = [self._known[row] for row in self._rows]
        return SimulatedGateway(router, tickets=tickets, rules=rules, rebuild=rebuild, features=features)

    def decided(self, decision: Decision, router: Router) -> None:
        """Note the threshold that was in force, and the score that it belongs to."""
        scores = decision.uncertainties
        if decision.threshold <= 0.0:
            return
        models = router.learned_models() if len(scores) > 1 else ()
        # A draft on which two scores agree does not say which of them decided; others do.
        deciding = [
            score
            for score, value in enumerate(scores)
            if value == decision.uncertainty and not (score and isinstance(models[score - 1], OwnScore))
        ]
        if len(deciding) == 1:
            key = (decision.epoch if deciding[0] else 0, deciding[0])
            self._highest[key] = max(self._highest.get(key, 0.0), decision.threshold)
            if deciding[0]:
                self._models[decision.epoch] = models

    def largest_risk(self) -> float:
        """The largest true risk of any threshold that was in force, for its own score."""
        first = RecordedLaw(self._table.uncertainty, self._table.loss)
        risks = [dithered_risk(first, self._highest.get((0, 0), 0.0), self._dither)]
        for epoch, models in self._models.items():
            limits = np.array([0.0, *(self._highest.get((epoch, score + 1), 0.0) for score in range(len(models)))])
            risks.append(float(self._risks(models, limits).max()))
        return max(risks)

    def _risks(self, models: Models, limits: NDArray[np.float64]) -> NDArray[np.float64]:
        """The true risk of a threshold of each score, given the models and the threshold of each score."""
        draws = [(number + 0.5) / DITHERS for number in range(DITHERS)] if self._dither else [0.0]
        loses = np.flatnonzero(self._table.loss).tolist()  # other drafts add nothing to a risk
        total: NDArray[np.float64] = np.zeros(len(limits))
        for row in loses:
            own, known = float(self._table.uncertainty[row]), self._known[row]
            lowered = (dithered(own, self._dither, draw) if self._dither else own for draw in draws)
            below = np.array([_all_scores((score, *known), models) for score in lowered]) < limits
            total += self._table.loss[row] * below.mean(axis=0)
        return total / len(self._table)


def _all_scores(known: tuple[Feature, ...], models: Models) -> tuple[Any, ...]:
    """The score that was there first, which is the first feature, and that of each model."""
    return known[0], *[model.score(known) for model in models]
