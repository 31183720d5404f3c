"""Logistic regression with a ridge: the minimum of the weighted log-loss, found by Newton's method."""

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

NEWTON_STEPS, LEAST_GAINED = 60, 1e-9
MOST_EXPONENT = 700.0  # beyond it, exponentials overflow
# Up to so many multiplications, of a matrix with a vector and with a matrix, OpenBLAS uses one thread. With several, on
# a busy machine, they wait for each other for up to a hundred times as long as such a product takes.
OF_VECTOR, OF_MATRIX = 9_000, 260_000
# From so many columns on, it solves equations with several threads in any case: small parts would only cost time.
MANY_COLUMNS = 100


def minimum(columns: Vector, losses: Vector, weights: Vector, penalties: Vector, start: Vector) -> Vector:
    """Where the weighted log-loss plus the ridge is smallest, found from a start."""

    def objective(at: Vector) -> tuple[float, Vector]:
        """Its value, and the log-odds there."""
        log_odds = product(columns, at)
        lost = np.logaddexp(0.0, log_odds) - losses * log_odds
        return float(weights @ lost + penalties @ np.square(at) / 2.0), log_odds

    at, ridge = start, np.diag(penalties)
    value, log_odds = objective(at)
    for _ in range(NEWTON_STEPS):
        predicted = logistic(log_odds)
        gradient = sum_over_samples(columns, weights * (predicted - losses)) + penalties * at
        step = np.linalg.solve(curvature(columns, weights, predicted) + ridge, gradient)
        # What the step gains if the objective is a parabola, as it is nearly near its minimum. There the gain drowns in
        # rounding errors, and a search for a step that does not increase the value would find none.
        if float(gradient @ step) / 2.0 < LEAST_GAINED:
            at = at - step
            break
        size = 1.0
        reached, log_odds = objective(at - step)
        while reached > value and size > 1e-9:
            size /= 2.0
            reached, log_odds = objective(at - size * step)
        at, value = at - size * step, reached
    return at


def logistic(log_odds: Vector) -> Vector:
    """The probabilities with these log-odds."""
    return 1.0 / (1.0 + np.exp(np.minimum(-log_odds, MOST_EXPONENT)))


def curvature(columns: Vector, weights: Vector, predicted: Vector) -> Vector:
    """The second derivatives of the weighted log-loss."""
    scaled = columns * np.sqrt(weights * predicted * (1.0 - predicted))[:, None]
    return sum_over_samples(scaled, scaled)


def product(columns: Vector, right: Vector) -> Vector:
    """``columns @ right``."""
    parts = [columns[part] @ right for part in _parts(columns, right)]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def sum_over_samples(columns: Vector, right: Vector) -> Vector:
    """``columns.T @ right``."""
    first, *others = (columns[part].T @ right[part] for part in _parts(columns, right))
    for other in others:
        first += other
    return first


def _parts(columns: Vector, right: Vector) -> list[slice]:
    """The rows in parts that one thread multiplies."""
    samples, width = columns.shape
    if width >= MANY_COLUMNS:
        return [slice(None)]
    most = OF_VECTOR // width if right.ndim == 1 else OF_MATRIX // (width * right.shape[1])
    return [slice(start, start + most) for start in range(0, samples, most)]
