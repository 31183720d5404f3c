"""What audits that asked all models have shown: the rounds that rules are fitted on and compared with."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bpac.betting.wealth.envelope import envelope
from bpac.routing.cascade.rounds import StageAnswer, StageOutcomes, outcomes_from_json
from bpac.routing.cascade.rules import Rule, values

Vector = NDArray[np.float64]
# The latest rounds that are kept; beyond it, the older half is dropped.
MOST_ROUNDS = 8192
# Fewest rounds that a rule was not fitted on before only they say what it could save.
FEWEST_UNSEEN = 64


class FullAudits:
    """Rounds in which every model was asked, each with the number of queries that it stands for."""

    def __init__(self) -> None:
        self.rounds: list[StageOutcomes] = []
        self.weights: list[float] = []
        self.dropped = 0

    def __len__(self) -> int:
        return len(self.rounds)

    @property
    def seen(self) -> int:
        """How many rounds there were, with those that are no longer kept."""
        return self.dropped + len(self.rounds)

    def add(self, outcome: StageOutcomes, weight: float) -> None:
        """Keep a round."""
        self.rounds.append(outcome)
        self.weights.append(weight)
        if len(self.rounds) > MOST_ROUNDS:
            half = MOST_ROUNDS // 2
            del self.rounds[:half], self.weights[:half]
            self.dropped += half

    def without(self, part: int, parts: int) -> "FullAudits":
        """The sample without every so-manieth round.

        Parameters
        ----------
        part: the first round that is left out, from 0.
        parts: the distance between those left out.
        """
        rest = FullAudits()
        rest.rounds = [outcome for row, outcome in enumerate(self.rounds) if row % parts != part]
        rest.weights = [weight for row, weight in enumerate(self.weights) if row % parts != part]
        return rest

    def state(self) -> dict[str, Any]:
        """All that a later start needs, as JSON values."""
        return {"rounds": [list(outcome) for outcome in self.rounds], "weights": self.weights, "dropped": self.dropped}

    def load(self, state: dict[str, Any]) -> None:
        """Take over a state that ``state`` returned."""
        self.rounds = [outcomes_from_json(outcome) for outcome in state["rounds"]]
        self.weights, self.dropped = list(state["weights"]), state["dropped"]


def rounded_losses(rule: Rule, outcome: StageOutcomes) -> tuple[list[float], list[float]]:
    """The values of a rule's answers in a round, and their losses."""
    return values(rule, outcome.answers), [outcome.losses[stage - 1] or 0.0 for stage in rule.stages]


def all_answered(rule: Rule, answers: Sequence[StageAnswer]) -> bool:
    """Whether all models that a rule asks were asked and have answered."""
    return all(answers[stage - 1] for stage in rule.stages)


class Estimates:
    """What a rule would cost at a threshold, as estimated from a sample.

    Parameters
    ----------
    rule: the rule.
    prices: price of a call of each model, the reference last.
    floor: the share of accepted answers that is audited at least.
    fitted_on: how many rounds of the sample the rule was fitted on.
    """

    def __init__(self, rule: Rule, prices: Sequence[float], floor: float, fitted_on: int = 0) -> None:
        self._rule = rule
        self.fitted_on = fitted_on
        self._values: list[list[float]] = []
        self._steps: list[list[tuple[float, float]]] = []
        self._first = 0
        asked = np.cumsum([prices[stage - 1] for stage in rule.stages])
        # What it costs to stop at each of the rule's stages, with audits of a share ``floor``; last, to stop at none.
        self._costs = np.array([*(asked + floor * (sum(prices) - asked)), asked[-1] + prices[-1]])
        self._audits = np.array([*(sum(prices) - asked), 0.0])

    def follow(self, sample: FullAudits) -> None:
        """Take in the rounds that came since the last call."""
        gone = sample.dropped - self._first
        if gone:
            del self._values[:gone], self._steps[:gone]
            self._first = sample.dropped
        for outcome in sample.rounds[len(self._values) :]:
            self.add(*rounded_losses(self._rule, outcome))

    def add(self, found: list[float], losses: Sequence[float]) -> None:
        """Take in a round.

        Parameters
        ----------
        found: the values of the rule's answers.
        losses: their losses.
        """
        self._values.append(found)
        self._steps.append(envelope(found, losses))

    def possible(self, weights: Vector, most: float, threshold: float) -> float:
        """Cost per query at the largest threshold that looks safe, or at a larger one that is certified.

        A rule does better on the rounds that it was fitted on than on others. So only others count, if there are enough
        of them.

        Parameters
        ----------
        weights: of the rounds.
        most: losses per query that are safe.
        threshold: the certified threshold.
        """
        start = max(self.fitted_on - self._first, 0)
        if len(self._values) - start < FEWEST_UNSEEN:
            start = 0
        safe = self.looks_safe(weights, most, start)
        return self.cost(weights, max(safe, threshold), start)[0]

    def cost(self, weights: Vector, threshold: float, start: int = 0) -> tuple[float, float, float]:
        """Cost per query at a threshold, the share of answers accepted, and the price of an audit of one of them.

        Parameters
        ----------
        weights: of the rounds.
        threshold: the threshold.
        start: the first round that counts.
        """
        below = np.array(self._values[start:]) < threshold
        weights = weights[start:]
        stops = np.where(below.any(axis=1), below.argmax(axis=1), below.shape[1])
        total = weights.sum()
        accepted = float(weights[stops < below.shape[1]].sum() / total)
        audit = float((weights * self._audits[stops]).sum() / total)
        return float((weights * self._costs[stops]).sum() / total), accepted, audit

    def looks_safe(self, weights: Vector, most: float, start: int = 0) -> float:
        """The largest threshold at which the weighted losses from a round on are at most ``most`` per query."""
        weights = weights[start:]
        rows = [(level, loss, row) for row, steps in enumerate(self._steps[start:]) for level, loss in steps]
        if not rows:
            return 1.0
        levels = np.array([level for level, _, _ in rows])
        order = levels.argsort(kind="stable")
        before: dict[int, float] = {}
        amounts = np.empty(len(rows))
        for place, (_, loss, row) in enumerate(rows):
            amounts[place] = (loss - before.get(row, 0.0)) * weights[row]
            before[row] = loss
        sums = np.cumsum(amounts[order])
        # A loss counts for thresholds above its level.
        at = int(sums.searchsorted(most * weights.sum(), side="right"))
        return float(levels[order][at]) if at < len(rows) else 1.0
