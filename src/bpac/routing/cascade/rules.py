"""Stopping rules: they give each answer of a cascade a value, and the first value below the threshold stops.

1. A rule asks some of the models, in order, and passes over the others. A pair is a rule that asks one.
2. The value of an answer depends on it and on earlier answers that the rule asked for, and on nothing else.
3. A rule never changes. A fitted rule is recorded in the journal with all its numbers.
"""

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from bpac.arguments import fraction
from bpac.errors import InputError
from bpac.routing.cascade.rounds import StageAnswer
from bpac.routing.cascade.spreading import spread


class Rule(Protocol):
    """A stopping rule."""

    @property
    def stages(self) -> tuple[int, ...]:
        """The stages that it asks, in order, from 1; without the last stage, which is the reference."""

    def value(self, index: int, answers: Sequence[StageAnswer]) -> float:
        """The value of an answer, in [0, 1].

        Parameters
        ----------
        index: which of the rule's stages, from 0.
        answers: the answers by stage, at least up to that one.
        """


def values(rule: Rule, answers: Sequence[StageAnswer]) -> list[float]:
    """The values of all answers that a rule asks for."""
    return [rule.value(index, answers) for index in range(len(rule.stages))]


@dataclass(frozen=True, slots=True)
class UncertaintyRule:
    """The value of an answer is its uncertainty.

    Parameters
    ----------
    stages: the stages that it asks.
    width: by how much answers with the same uncertainty are spread by their length, see ``spreading.py`` (default: 0,
        not at all). The length is the first further number of an answer.

    >>> UncertaintyRule((1, 2)).value(1, [(0.4,), (0.1,)])
    0.1
    """

    stages: tuple[int, ...]
    width: float = 0.0

    def value(self, index: int, answers: Sequence[StageAnswer]) -> float:
        """The uncertainty of the answer, or 1 if the model failed."""
        answer = answers[self.stages[index] - 1]
        if not answer:
            return 1.0
        return spread(answer[0], self.width, answer[1]) if self.width and len(answer) > 1 else answer[0]

    def to_json(self) -> dict[str, Any]:
        """The rule as JSON values."""
        return {"stages": list(self.stages)} | ({"width": self.width} if self.width else {})


@dataclass(frozen=True, slots=True)
class StageModel:
    """The predicted loss of one answer, and what going on is worth.

    Parameters
    ----------
    weights: weight of the constant, then of each number that is known (see ``features``).
    knots: predicted losses at which ``worth`` is known, in increasing order.
    worth: for each knot and each price, the loss that going on is worth, which rises with the price; empty where going
        on means the reference.
    """

    weights: tuple[float, ...]
    knots: tuple[float, ...] = ()
    worth: tuple[tuple[float, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class FittedRule:
    """The value of an answer is the price at which stopping and going on are worth the same.

    Let a call of the reference cost ``s`` units of loss, and the other models in proportion. Stopping costs the
    predicted loss. Going on costs the price of the next model, then the smaller of the two again. The value is the
    ``s`` at which both are equal: at every larger price, stopping is better.

    Parameters
    ----------
    stages: the stages that it asks.
    models: for each of them, what was fitted.
    prices: the prices at which ``worth`` is known, in increasing order, from 0 to 1.
    averages: for each stage that it asks, the average of the numbers of an answer, which stand in for those of a model
        that failed.
    """

    stages: tuple[int, ...]
    models: tuple[StageModel, ...]
    prices: tuple[float, ...]
    averages: tuple[tuple[float, ...], ...]

    def value(self, index: int, answers: Sequence[StageAnswer]) -> float:
        """The value of the answer, or 1 if the model failed."""
        if not answers[self.stages[index] - 1]:
            return 1.0
        model = self.models[index]
        total = model.weights[0]
        place = 1
        for stage, average in zip(self.stages[: index + 1], self.averages, strict=False):
            numbers = features(answers[stage - 1], average)
            for number in numbers:
                total += model.weights[place] * number
                place += 1
        predicted = logistic(total)
        return self._price(model, predicted) if model.worth else predicted

    def _price(self, model: StageModel, predicted: float) -> float:
        """The price at which going on is worth the predicted loss."""
        knots = model.knots
        above = bisect_right(knots, predicted)
        if 0 < above < len(knots):
            share = (predicted - knots[above - 1]) / (knots[above] - knots[above - 1])
            pairs = zip(model.worth[above - 1], model.worth[above], strict=True)
            worth = [low + share * (high - low) for low, high in pairs]
        else:
            worth = list(model.worth[min(above, len(knots) - 1)])
        at = bisect_right(worth, predicted)
        if at >= len(worth):
            return 1.0
        low, high = worth[at - 1], worth[at]
        price = self.prices[at - 1] + (predicted - low) / (high - low) * (self.prices[at] - self.prices[at - 1])
        return min(max(price, 0.0), 1.0)

    def to_json(self) -> dict[str, Any]:
        """The rule as JSON values."""
        return {
            "stages": list(self.stages),
            "models": [[list(m.weights), list(m.knots), [list(row) for row in m.worth]] for m in self.models],
            "prices": list(self.prices),
            "averages": [list(average) for average in self.averages],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "FittedRule":
        """The rule that was written with ``to_json``; ``InputError`` if it is none."""
        try:
            models = tuple(
                StageModel(_numbers(weights), _numbers(knots), tuple(map(_numbers, worth)))
                for weights, knots, worth in data["models"]
            )
            stages = tuple(int(stage) for stage in data["stages"])
            rule = cls(stages, models, _numbers(data["prices"]), tuple(map(_numbers, data["averages"])))
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"this is not a fitted rule: {error!r}") from error
        rule.check()
        return rule

    def check(self) -> None:
        """Raise ``InputError`` unless the parts of the rule fit together."""
        widths = [2 + len(average) - 1 for average in self.averages]
        fits = len(self.models) == len(self.stages) == len(self.averages) > 0 and all(
            len(model.weights) == 1 + sum(widths[: index + 1])
            and len(model.knots) == len(model.worth)
            and all(len(row) == len(self.prices) for row in model.worth)
            for index, model in enumerate(self.models)
        )
        _check_stages(self.stages)
        if not fits:
            raise InputError(f"the parts of this fitted rule do not fit together: {self!r}")


JoiningRule = FittedRule | UncertaintyRule


def rule_from_json(data: Mapping[str, Any]) -> FittedRule | UncertaintyRule:
    """The rule that was written to JSON; ``InputError`` if it is none."""
    if set(data) - {"width"} != {"stages"}:
        return FittedRule.from_json(data)
    try:
        stages = tuple(int(stage) for stage in data["stages"])
    except (TypeError, ValueError) as error:
        raise InputError(f"this is not a rule: {data!r}") from error
    _check_stages(stages)
    return UncertaintyRule(stages, fraction(data.get("width", 0.0), "width"))


def _check_stages(stages: tuple[int, ...]) -> None:
    if not stages or list(stages) != sorted(set(stages)) or stages[0] < 1:
        raise InputError(f"the stages of a rule must increase from 1 on, got {stages}")


def features(answer: StageAnswer, average: Sequence[float]) -> list[float]:
    """The numbers that predictions use: the uncertainty, its logarithm, and what else is known of the answer.

    Parameters
    ----------
    answer: the answer.
    average: the average answer, which stands in for that of a model that failed.
    """
    uncertainty, *others = answer or average
    return [uncertainty, math.log(uncertainty + 0.01), *others]


def logistic(total: float) -> float:
    """``1 / (1 + exp(-total))``, without overflow."""
    if total >= 0.0:
        return 1.0 / (1.0 + math.exp(-total))
    odds = math.exp(total)
    return odds / (1.0 + odds)


def _numbers(data: Any) -> tuple[float, ...]:
    numbers = tuple(float(number) for number in data)
    if not all(map(math.isfinite, numbers)):
        raise ValueError("a number is not finite")
    return numbers
