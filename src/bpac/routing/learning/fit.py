"""The fit of a learned score: logistic regression with a ridge, on audits weighted by 1/π.

1. A number is replaced by the log-odds of its rank among the samples, and by the square of that. So neither the unit of
   a feature nor a single huge value matters, and the predicted loss need not rise or fall along it.
2. A word that is common enough gets a weight of its own; so does a feature that is missing in some samples.
3. The weights minimise the weighted log-loss plus a ridge, by Newton's method with steps that never increase it. With
   the ridge there is always exactly one minimum, also where a feature separates losses from wins.
4. The result is written down as the term of each feature at a few *knots* (see ``model.py``), rounded: the journal
   holds what is used, to the last bit.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bpac.routing.learning.features import Feature
from bpac.routing.learning.model import FrozenModel
from bpac.routing.learning.samples import Sample

Vector = NDArray[np.float64]

# Ranks at which there are knots; beyond the outermost, a term is constant.
RANKS = (
    1 / 64,
    1 / 32,
    1 / 16,
    1 / 8,
    3 / 16,
    1 / 4,
    3 / 8,
    1 / 2,
    5 / 8,
    3 / 4,
    13 / 16,
    7 / 8,
    15 / 16,
    31 / 32,
    63 / 64,
)
LEAST_RANK = 1 / 128
# Samples of a word, below which it has no weight of its own; and the most words of a feature.
LEAST_SAMPLES, MOST_WORDS = 8, 32
# The ridge on squares is larger by this: a term that bends needs more evidence than one that does not.
BEND = 4.0
PLACES = 6
NEWTON_STEPS, CONVERGED = 60, 1e-9
FOLDS = 5


def fit(samples: Sequence[Sample], ridge: float) -> FrozenModel:
    """The model that these samples lead to; the same for the same samples.

    Parameters
    ----------
    samples: audits with their outcome, at least one.
    ridge: strength of the penalty.

    >>> easy, hard = Sample((0.1,), loss=0.0, propensity=1.0), Sample((0.9,), loss=1.0, propensity=1.0)
    >>> model = fit([easy, hard] * 10, ridge=1.0)
    >>> model.score((0.1,)) < 0.3 < 0.7 < model.score((0.9,))
    True
    """
    return Regression(samples, ridge).model()


class Regression:
    """Samples as columns of numbers; the columns do not depend on the losses.

    Parameters
    ----------
    samples, ridge: as for ``fit``.
    """

    def __init__(self, samples: Sequence[Sample], ridge: float) -> None:
        weights = np.array([1.0 / sample.propensity for sample in samples])
        # As many as there would be if all had the same weight: a few heavy samples say less than they weigh.
        self.weights = weights * (weights.sum() / np.square(weights).sum())
        self.losses = np.array([sample.loss for sample in samples])
        self._own_scores = np.array([sample.features[0] for sample in samples], dtype=np.float64)
        features = zip(*(sample.features for sample in samples), strict=True)
        self._terms = [_Term(column, self.weights) for column in features]
        columns = [column for term in self._terms for column in term.columns]
        self._columns = np.column_stack([np.ones(len(self.losses)), *columns])
        self._penalties = np.array([1e-3, *(penalty * ridge for term in self._terms for penalty in term.penalties)])

    def model(self) -> FrozenModel:
        """The model that all samples lead to."""
        solution = _minimum(self._columns, self.losses, self.weights, self._penalties)
        used, data = 1, []
        for term in self._terms:
            data.append(term.to_json(solution[used : used + len(term.columns)]))
            used += len(term.columns)
        return FrozenModel({"intercept": round(float(solution[0]), PLACES), "terms": data})

    def promised_gain(self, epsilon: float) -> float:
        """How much more traffic a learned score could accept than the one that was there first, as a share of its.

        It is an estimate by cross-validation: each sample is scored by a model that was fitted to the others.

        Parameters
        ----------
        epsilon: the average loss that is allowed.
        """
        predicted = np.round(self._predicted_by_others(), PLACES)
        before, after = (
            _safe_share(score, self.losses, self.weights, epsilon) for score in (self._own_scores, predicted)
        )
        return round(max(0.0, after - before) / max(before, 0.01), 6)

    def _predicted_by_others(self) -> Vector:
        """The log-odds of each sample, by a model that was fitted to samples of other folds."""
        fold = np.arange(len(self.losses)) % FOLDS
        predicted = np.empty(len(self.losses))
        for held_out in range(FOLDS):
            rest = fold != held_out
            solution = _minimum(self._columns[rest], self.losses[rest], self.weights[rest], self._penalties)
            predicted[~rest] = self._columns[~rest] @ solution
        return predicted


class _Term:
    """The columns of the regression that come from one feature.

    Parameters
    ----------
    values: the feature in every sample.
    weights: the weight of every sample.
    """

    def __init__(self, values: Sequence[Feature], weights: Vector) -> None:
        self.columns: list[Vector] = []
        self.penalties: list[float] = []
        self._bent: list[tuple[float, float]] = []  # mean and deviation of each power of the rank's log-odds
        numbers = np.array([isinstance(value, float) for value in values])
        self._knots, self._at_knots = np.empty(0), np.empty(0)
        if numbers.any():
            known = np.array([value for value in values if isinstance(value, float)])
            self._add_number(known, numbers, weights)
        counts = Counter(value for value in values if isinstance(value, str))
        # A word that all samples have says nothing.
        common = [word for word, count in counts.most_common(MOST_WORDS) if LEAST_SAMPLES <= count < len(values)]
        self._words = sorted(common)
        for word in self._words:
            self._add(np.array([float(value == word) for value in values]), 1.0)
        missing = np.array([float(value is None) for value in values])
        self._has_missing = bool(LEAST_SAMPLES <= missing.sum() <= len(missing) - LEAST_SAMPLES)
        if self._has_missing:
            self._add(missing, 1.0)

    def _add(self, column: Vector, penalty: float) -> None:
        self.columns.append(column)
        self.penalties.append(penalty)

    def _add_number(self, known: Vector, where: NDArray[np.bool_], weights: Vector) -> None:
        order = np.argsort(known, kind="stable")
        ordered, weight = known[order], weights[where][order]
        distinct, first = np.unique(ordered, return_index=True)
        each = np.add.reduceat(weight, first) / weight.sum()
        ranks = np.cumsum(each) - each / 2.0  # of the middle, where several samples have one value
        if len(distinct) <= len(RANKS):
            kept = np.arange(len(distinct))
        else:
            kept = np.unique(np.searchsorted(ranks, RANKS).clip(max=len(distinct) - 1))
        self._knots = distinct[kept]
        rank = ranks[kept].clip(LEAST_RANK, 1.0 - LEAST_RANK)
        self._at_knots = np.log(rank / (1.0 - rank))
        at = np.interp(known, self._knots, self._at_knots)
        weight, total = weights[where], weights[where].sum()
        for power, penalty in ((1, 1.0), (2, BEND)):
            bent = at**power
            mean = float((bent * weight).sum() / total)
            deviation = float(np.sqrt((np.square(bent - mean) * weight).sum() / total))
            if deviation < 1e-6:
                break  # a constant feature says nothing
            column = np.zeros(len(where))
            column[where] = (bent - mean) / deviation
            self._add(column, penalty)
            self._bent.append((mean, deviation))

    def to_json(self, solution: Vector) -> dict[str, Any]:
        """The term at its knots, of its words, and where the feature is missing."""
        at_knots = np.zeros(len(self._knots))
        for power, ((mean, deviation), weight) in enumerate(zip(self._bent, solution, strict=False), start=1):
            at_knots += weight * (self._at_knots**power - mean) / deviation
        others = [round(float(weight), PLACES) for weight in solution[len(self._bent) :]]
        return {
            "knots": self._knots.tolist() if self._bent else [],
            "values": [round(float(value), PLACES) for value in at_knots] if self._bent else [],
            "words": dict(zip(self._words, others, strict=False)),
            "missing": others[-1] if self._has_missing else 0.0,
        }


def _minimum(columns: Vector, losses: Vector, weights: Vector, penalties: Vector) -> Vector:
    """Where the weighted log-loss plus the ridge is smallest."""

    def objective(at: Vector) -> tuple[float, Vector]:
        """Its value, and the log-odds there."""
        log_odds = columns @ at
        lost = np.logaddexp(0.0, log_odds) - losses * log_odds
        return float(weights @ lost + penalties @ np.square(at) / 2.0), log_odds

    at, ridge, by_feature = np.zeros(columns.shape[1]), np.diag(penalties), columns.T
    value, log_odds = objective(at)
    gained, steps = np.inf, 0
    while gained >= CONVERGED and steps < NEWTON_STEPS:
        steps += 1
        predicted = 0.5 + 0.5 * np.tanh(log_odds / 2.0)  # the logistic function, without overflow
        gradient = by_feature @ (weights * (predicted - losses)) + penalties * at
        curvature = by_feature @ (columns * (weights * predicted * (1.0 - predicted))[:, None]) + ridge
        step = np.linalg.solve(curvature, gradient)
        size = 1.0
        reached, log_odds = objective(at - step)
        while reached > value and size > 1e-9:
            size /= 2.0
            reached, log_odds = objective(at - size * step)
        at = at - size * step
        gained, value = value - reached, reached
    return at


def _safe_share(scores: Vector, losses: Vector, weights: Vector, epsilon: float) -> float:
    """The largest share of the samples that lie below one threshold and have an average loss of at most ε over all."""
    _, which = np.unique(scores, return_inverse=True)
    weight = np.bincount(which, weights)
    risk = np.cumsum(np.bincount(which, weights * losses)) / weight.sum()
    return float(weight[: np.searchsorted(risk, epsilon, side="right")].sum() / weight.sum())
