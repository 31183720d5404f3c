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
from bpac.routing.learning.logistic import Vector, curvature, logistic, minimum, product, sum_over_samples
from bpac.routing.learning.model import FrozenModel
from bpac.routing.learning.samples import Sample

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
# Where curvatures from nearby are used: the largest step that ends the search, and the largest step that goes on with
# it, relative to the one before.
CONVERGED, SLOW = 1e-7, 0.5
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
        nothing = np.zeros(len(self._penalties))
        self._solution = minimum(self._columns, self.losses, self.weights, self._penalties, nothing)

    def model(self) -> FrozenModel:
        """The model that all samples lead to."""
        solution, used, data = self._solution, 1, []
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
        rest = fold[:, None] != np.arange(FOLDS)
        solutions = self._near_solutions(rest)
        if solutions is None:
            found = [
                minimum(self._columns[one], self.losses[one], self.weights[one], self._penalties, self._solution)
                for one in rest.T
            ]
            solutions = np.column_stack(found)
        predicted: Vector = product(self._columns, solutions)[~rest]
        return predicted

    def _near_solutions(self, parts: NDArray[np.bool_]) -> Vector | None:
        """The solution for each part of the samples, all at once; none if one is not near that for all samples.

        Most of the time of Newton's method goes into curvatures. Those near the solution for all samples are good
        enough for every step, as long as the steps shrink fast.

        Parameters
        ----------
        parts: which samples belong to each part, in columns.
        """
        columns, losses, penalties = self._columns, self.losses[:, None], self._penalties[:, None]
        near = logistic(product(columns, self._solution))
        everywhere = curvature(columns, self.weights, near) + np.diag(self._penalties)
        without = [curvature(columns[one], self.weights[one], near[one]) for one in ~parts.T]
        inverses = np.linalg.inv(everywhere - np.array(without))
        weights, at = self.weights[:, None] * parts, self._solution[:, None]
        moved, predicted = np.inf, near[:, None]
        while moved >= CONVERGED:
            gradient = sum_over_samples(columns, weights * (predicted - losses)) + penalties * at
            step = np.einsum("kij,jk->ik", inverses, gradient)
            before, moved = moved, float(np.abs(step).max())
            if not moved <= SLOW * before:
                return None
            at = at - step
            predicted = logistic(product(columns, at))
        return at


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
        self._knots, self._at_knots = np.empty(0), np.empty(0)
        kinds = set(map(type, values))
        if kinds == {float}:  # as in most cases
            self._add_number(np.array(values), np.ones(len(values), dtype=np.bool_), weights)
        elif float in kinds:
            known = [value for value in values if isinstance(value, float)]
            where = np.array([value.__class__ is float for value in values])
            self._add_number(np.array(known), where, weights)
        counts = Counter([value for value in values if isinstance(value, str)] if str in kinds else [])
        # A word that all samples have says nothing.
        common = [word for word, count in counts.most_common(MOST_WORDS) if LEAST_SAMPLES <= count < len(values)]
        self._words = sorted(common)
        if self._words:
            numbered = {word: number for number, word in enumerate(self._words)}
            which = np.array([numbered.get(value, -1) if isinstance(value, str) else -1 for value in values])
            for column in (np.arange(len(numbered))[:, None] == which).astype(np.float64):
                self._add(column, 1.0)
        self._has_missing = LEAST_SAMPLES <= values.count(None) <= len(values) - LEAST_SAMPLES
        if self._has_missing:
            self._add(np.array([float(value is None) for value in values]), 1.0)

    def _add(self, column: Vector, penalty: float) -> None:
        self.columns.append(column)
        self.penalties.append(penalty)

    def _add_number(self, known: Vector, where: NDArray[np.bool_], weights: Vector) -> None:
        of_known = weights[where]
        order = np.argsort(known, kind="stable")
        ordered, weight = known[order], of_known[order]
        first = np.flatnonzero(np.diff(ordered, prepend=-np.inf))
        distinct = ordered[first]
        each = np.add.reduceat(weight, first) / weight.sum()
        ranks = np.cumsum(each) - each / 2.0  # of the middle, where several samples have one value
        if len(distinct) <= len(RANKS):
            kept = np.arange(len(distinct))
        else:
            places = np.searchsorted(ranks, RANKS).clip(max=len(distinct) - 1)
            kept = np.array(sorted(set(places.tolist())))
        self._knots = distinct[kept]
        rank = ranks[kept].clip(LEAST_RANK, 1.0 - LEAST_RANK)
        self._at_knots = np.log(rank / (1.0 - rank))
        at = np.interp(known, self._knots, self._at_knots)
        total = of_known.sum()
        for power, penalty in ((1, 1.0), (2, BEND)):
            bent = at**power
            mean = float((bent * of_known).sum() / total)
            deviation = float(np.sqrt((np.square(bent - mean) * of_known).sum() / total))
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


def _safe_share(scores: Vector, losses: Vector, weights: Vector, epsilon: float) -> float:
    """The largest share of the samples that lie below one threshold and have an average loss of at most ε over all."""
    _, which = np.unique(scores, return_inverse=True)
    weight = np.bincount(which, weights)
    risk = np.cumsum(np.bincount(which, weights * losses)) / weight.sum()
    return float(weight[: np.searchsorted(risk, epsilon, side="right")].sum() / weight.sum())
