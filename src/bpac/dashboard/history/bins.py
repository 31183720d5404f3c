"""Number of requests and weighted losses by uncertainty, for the histogram and the estimate at other limits."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bpac.betting.ledgers.levels import RelativeLevels
from bpac.routing.decision import Decision

# Relative steps, because many real scores lie close to 0. Every multiple of 1/32 is a level too.
LEVELS = RelativeLevels(bits=6, octaves=20)
# Weights are kept as integer multiples of 1/UNIT: subtraction is then exact, and the order does not matter.
UNIT = 1 << 20
# The largest weight of an audit, which keeps all sums within 64 bits.
MOST_WEIGHT = 1e4

Counts = NDArray[np.int64]
Sums = NDArray[np.float64]


class Bins:
    """Counts of rounds and sums of the weights of audits, for each level of uncertainty.

    Rounds are counted over the whole game. Weights belong to the current epoch, like the wealth. The weight of an audit
    is one over the probability with which it was made; its loss counts as 1 until the outcome is known.

    >>> bins = Bins()
    >>> audit = Decision(1, 0.1, 0.5, propensity=0.25, least_propensity=0.25, call_expert=True, serve_draft=False)
    >>> bins.decided([audit])
    >>> float(bins.losses()[0].sum())
    4.0
    >>> bins.resolved([(audit, 0.5)])
    >>> float(bins.losses()[0].sum())
    2.0
    """

    __slots__ = ("_earlier", "_spared", "_spared_squares", "_squares", "_weights", "called", "kept")

    def __init__(self) -> None:
        self.kept, self.called, self._earlier = _zeros(), _zeros(), _zeros()
        self._forget()

    def _forget(self) -> None:
        # Sums over audits: of weights (1/π), of their squares, and the parts of both that are known not to be lost.
        self._weights, self._squares, self._spared, self._spared_squares = _zeros(), _zeros(), _zeros(), _zeros()

    def decided(self, decisions: Sequence[Decision]) -> None:
        """Count rounds of this epoch; the loss of an audit is 1 until its outcome is known."""
        codes, called = self._count(decisions)
        audits = codes[called]
        weights = _weights([decision[3] for decision in decisions])[called]
        np.add.at(self._weights, audits, _units(weights))
        np.add.at(self._squares, audits, _units(weights**2))

    def decided_before(self, decisions: Sequence[Decision]) -> None:
        """Count rounds that belong to an earlier epoch, without weight."""
        np.add.at(self._earlier, self._count(decisions)[0], 1)

    def _count(self, decisions: Sequence[Decision]) -> tuple[Counts, NDArray[np.bool_]]:
        """Count rounds; returns the level of each and whether the expert was called."""
        codes = LEVELS.codes([decision.own_score for decision in decisions])
        called = np.array([decision.call_expert for decision in decisions])
        np.add.at(self.kept, codes[~called], 1)
        np.add.at(self.called, codes[called], 1)
        return codes, called

    def resolved(self, outcomes: Sequence[tuple[Decision, float]]) -> None:
        """Replace the assumed losses of audits of this epoch by their actual losses."""
        codes = LEVELS.codes([decision.own_score for decision, _ in outcomes])
        weights = _weights([decision.propensity for decision, _ in outcomes])
        losses = np.array([loss for _, loss in outcomes])
        np.add.at(self._spared, codes, _units((1.0 - losses) * weights))
        np.add.at(self._spared_squares, codes, _units((1.0 - losses**2) * weights**2))

    def start_epoch(self) -> None:
        """Drop the weights, which describe the traffic of the epoch before."""
        self._earlier = self.kept + self.called
        self._forget()

    def traffic(self) -> Counts:
        """Rounds of this epoch, by level."""
        return self.kept + self.called - self._earlier

    def losses(self) -> tuple[Sums, Sums]:
        """Sums of the weighted losses of this epoch, and of their squares, by level."""
        return (self._weights - self._spared) / UNIT, (self._squares - self._spared_squares) / UNIT

    def audits(self) -> tuple[Sums, Sums]:
        """Sums of the weights of this epoch's audits, and of their squares, by level."""
        return self._weights / UNIT, self._squares / UNIT

    def histogram(self) -> dict[str, Any]:
        """Histogram of all rounds as JSON values: equal bins, or finer ones near 0 if most scores lie there."""
        total = self.kept + self.called
        even = [LEVELS.code(part / 32) for part in range(33)]
        halves = [0, *range(1, LEVELS.top + 1, 16)]  # of octaves
        codes = halves if 2 * total[: even[1]].sum() > total.sum() else even
        last = len(codes) - 2  # a score of exactly 1 belongs to the last bin
        bins = np.minimum(np.searchsorted(codes, np.arange(LEVELS.top + 1), side="right") - 1, last)
        kept, called = _zeros(last + 1), _zeros(last + 1)
        np.add.at(kept, bins, self.kept)
        np.add.at(called, bins, self.called)
        return {"edges": [LEVELS.value(code) for code in codes], "kept": kept.tolist(), "called": called.tolist()}

    def state(self) -> list[list[int]]:
        """The levels at which there is anything, as JSON values."""
        table = np.column_stack((np.arange(LEVELS.top + 1), *self._columns()))
        rows: list[list[int]] = table[table[:, 1:].any(axis=1)].tolist()
        return rows

    def load(self, rows: Sequence[Sequence[int]]) -> None:
        """Restore what ``state`` returned."""
        for code, *row in rows:
            for column, value in zip(self._columns(), row, strict=True):
                column[code] = value

    def _columns(self) -> tuple[Counts, ...]:
        weights = self._weights, self._squares, self._spared, self._spared_squares
        return self.kept, self.called, self._earlier, *weights


def _zeros(count: int = LEVELS.top + 1) -> Counts:
    return np.zeros(count, dtype=np.int64)


def _weights(propensities: Sequence[float]) -> Sums:
    # A draft kept by a policy that never audits has propensity 0; it is not an audit, and its weight is not used.
    return np.minimum(1.0 / np.maximum(propensities, 1.0 / MOST_WEIGHT), MOST_WEIGHT)


def _units(values: Sums) -> Counts:
    return np.rint(values * UNIT).astype(np.int64)
