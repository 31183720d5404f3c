"""Fits a stopping rule to the rounds in which all models were asked (MATH sections 14 and 15)."""

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from bpac.betting.payoff import Terms
from bpac.routing.cascade.full_audits import Estimates, FullAudits, rounded_losses
from bpac.routing.cascade.rules import FittedRule, Rule, StageModel, UncertaintyRule, features

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

PRICES = (0.0, *(float(price) for price in np.geomspace(1e-3, 1.0, 24)))
# Rounds behind each knot, and the most knots.
ROUNDS_PER_KNOT, MOST_KNOTS = 40, 8
# How strongly the weights are drawn towards 0, in rounds.
RIDGE = 5.0
NEWTON_STEPS = 20
# With more models than this, only runs of neighbouring stages are tried.
MOST_FREE_STAGES = 4
# Rules are compared on the rounds of a part that they were not fitted on, for each of so many parts.
FOLDS = 4


def fit_rule(
    sample: FullAudits,
    prices: Sequence[float],
    terms: Terms,
    known: Sequence[tuple[int, ...]] = (),
    width: float = 0.0,
) -> FittedRule | UncertaintyRule:
    """The rule that looks cheapest on a sample, of those that are not there yet.

    Parameters
    ----------
    sample: the rounds.
    prices: price of a call of each model, the reference last.
    terms: the terms of the bets.
    known: the stages of each rule that is there already and decides by uncertainty.
    width: by how much such rules spread answers with the same uncertainty.
    """
    costs: dict[tuple[tuple[int, ...], bool], float] = {}
    for stages in stage_sets(len(prices) - 1):
        for fitted in (False, True):
            if not fitted and stages in known:
                continue  # it is there already, with a wealth of its own
            by_uncertainty = None if fitted else UncertaintyRule(stages, width)
            cost = _cost_on_rounds_left_out(sample, stages, prices, terms, by_uncertainty)
            costs[stages, fitted] = math.inf if cost is None else cost
    stages, fitted = min(costs, key=costs.__getitem__)
    rule = fit_stages(sample, stages, prices) if fitted else None
    return rule or UncertaintyRule(stages, width)


def _cost_on_rounds_left_out(
    sample: FullAudits,
    stages: tuple[int, ...],
    prices: Sequence[float],
    terms: Terms,
    by_uncertainty: UncertaintyRule | None,
) -> float | None:
    """What a rule would cost, estimated on rounds that it was not fitted on; none if it cannot be fitted.

    Parameters
    ----------
    sample, prices, terms: as for ``fit_rule``.
    stages: the stages that it asks.
    by_uncertainty: the rule, if it need not be fitted.
    """
    estimates = Estimates(UncertaintyRule(stages), prices, terms.floor)
    weights: list[float] = []
    for fold in range(1 if by_uncertainty else FOLDS):
        rule: Rule | None = by_uncertainty
        rows = range(len(sample))
        if by_uncertainty is None:
            rule = fit_stages(sample.without(fold, FOLDS), stages, prices)
            rows = range(fold, len(sample), FOLDS)
        if rule is None:
            return None
        for row in rows:
            estimates.add(*rounded_losses(rule, sample.rounds[row]))
            weights.append(sample.weights[row])
    counted = np.array(weights)
    threshold = estimates.looks_safe(counted, terms.epsilon / terms.kept_share)
    return estimates.cost(counted, threshold)[0]


def stage_sets(stages: int) -> list[tuple[int, ...]]:
    """The sets of stages that a rule may ask, each in order.

    >>> stage_sets(2)
    [(1,), (2,), (1, 2)]
    """
    every = range(1, stages + 1)
    if stages > MOST_FREE_STAGES:
        return [tuple(range(first, last + 1)) for first in every for last in range(first, stages + 1)]
    return [chosen for count in every for chosen in combinations(every, count)]


def fit_stages(sample: FullAudits, stages: tuple[int, ...], prices: Sequence[float]) -> FittedRule | None:
    """A rule that asks these stages; none if one of them never answered, or if its numbers are too large."""
    weights = np.array(sample.weights)
    averages = []
    for stage in stages:
        known = [answer for outcome in sample.rounds if (answer := outcome.answers[stage - 1])]
        if not known:
            return None
        with np.errstate(all="ignore"):
            means = np.array(known).mean(axis=0)
        if not np.isfinite(means).all():
            return None
        averages.append(tuple(float(mean) for mean in means))
    numbers: list[Matrix] = []
    predicted: list[Vector] = []
    models: list[StageModel] = []
    for stage, average in zip(stages, averages, strict=True):
        answers = [outcome.answers[stage - 1] for outcome in sample.rounds]
        numbers.append(np.array([features(answer, average) for answer in answers]))
        known_rows = np.array([bool(answer) for answer in answers])
        losses = np.array([outcome.losses[stage - 1] or 0.0 for outcome in sample.rounds])
        design = np.hstack(numbers)
        fitted = fit_logistic(design[known_rows], losses[known_rows], weights[known_rows])
        if not np.isfinite(fitted).all():
            return None
        models.append(StageModel(tuple(fitted.tolist())))
        chances = 1.0 / (1.0 + np.exp(-np.clip(fitted[0] + design @ fitted[1:], -500.0, 500.0)))
        # A model that failed is passed over: no price makes stopping there better.
        predicted.append(np.where(known_rows, chances, np.inf))
    worth: Matrix = np.tile(np.array(PRICES), (len(weights), 1))
    for index in range(len(stages) - 2, -1, -1):
        later = np.minimum(predicted[index + 1][:, None], worth)
        step = prices[stages[index + 1] - 1] / prices[-1] * np.array(PRICES)
        knots, table = _average_by_knots(predicted[index], later + step, weights)
        models[index] = StageModel(models[index].weights, tuple(knots.tolist()), tuple(map(tuple, table.tolist())))
        worth = _interpolated(predicted[index], knots, table)
    return FittedRule(stages, tuple(models), PRICES, tuple(averages))


def fit_logistic(numbers: Matrix, losses: Vector, weights: Vector) -> Vector:
    """Weights of a logistic regression with a ridge: the constant first; not finite if the numbers are too large.

    Parameters
    ----------
    numbers: one row per round.
    losses: what is predicted, in [0, 1].
    weights: how many queries each round stands for.

    >>> fit_logistic(np.array([[0.0], [1.0]] * 50), np.array([0.0, 1.0] * 50), np.ones(100))[1] > 1.0
    np.True_
    """
    with np.errstate(all="ignore"):
        mean = numbers.mean(axis=0)
        spread = numbers.std(axis=0)
    if not np.isfinite(spread).all():
        return np.full(numbers.shape[1] + 1, math.nan)
    spread[spread < 1e-9] = 1.0
    design = np.column_stack((np.ones(len(numbers)), (numbers - mean) / spread))
    weights = weights / weights.mean()
    ridge = np.full(design.shape[1], RIDGE)
    ridge[0] = 1e-3
    found = np.zeros(design.shape[1])
    for _ in range(NEWTON_STEPS):
        chances = 1.0 / (1.0 + np.exp(-np.clip(design @ found, -30.0, 30.0)))
        gradient = design.T @ (weights * (losses - chances)) - ridge * found
        curvature = (design * (weights * chances * (1.0 - chances))[:, None]).T @ design + np.diag(ridge)
        found = found + np.clip(np.linalg.solve(curvature, gradient), -5.0, 5.0)
    slopes: Vector = found[1:] / spread
    return np.concatenate(([found[0] - float(slopes @ mean)], slopes))


def _average_by_knots(predicted: Vector, amounts: Matrix, weights: Vector) -> tuple[Vector, Matrix]:
    """Averages of amounts among rounds with similar predictions, and the mean prediction of each group."""
    known = np.isfinite(predicted)
    predicted, amounts, weights = predicted[known], amounts[known], weights[known]
    groups = max(1, min(len(predicted) // ROUNDS_PER_KNOT, MOST_KNOTS))
    knots: list[float] = []
    table: list[Vector] = []
    for rows in np.array_split(predicted.argsort(kind="stable"), groups):
        knot = float(np.average(predicted[rows], weights=weights[rows]))
        if knots and knot <= knots[-1]:
            continue  # the same prediction for many rounds
        knots.append(knot)
        table.append(np.average(amounts[rows], axis=0, weights=weights[rows]))
    return np.array(knots), np.array(table)


def _interpolated(predicted: Vector, knots: Vector, table: Matrix) -> Matrix:
    columns = [np.interp(np.where(np.isfinite(predicted), predicted, knots[-1]), knots, column) for column in table.T]
    return np.column_stack(columns)
