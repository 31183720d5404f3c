"""Bounds on the mean loss of drafts from audits, valid at all times at once.

Rounds are i.i.d. in some order. The loss ``l`` of a round is seen with a probability ``p`` that is fixed before it, so
that ``Z = l/p`` where it is seen, and 0 elsewhere, has the mean loss as its mean. Two bets on a mean ``m``:

1. *From below*: a gambler who stakes the fraction θ on "the mean is above m" multiplies the money by ``1 + θ(Z/m − 1)``
   in each round. If the mean is at most m, this is a supermartingale, so that 1/α is ever reached with probability at
   most α (Ville). The largest m at which it was reached is a lower bound. The money falls in m, so there is one such m.
2. *From above*: ``1 + θp(m − Z)``, which is positive because ``Z ≤ 1/p``. The least m at which 1/α was reached is an
   upper bound; the money rises in m.
3. Gamblers with several fractions share the money equally. Factors commute, so that counts of rounds by loss and
   probability are all that is kept. Both are rounded, always against the bet: a loss down and a probability up from
   below, a loss up and a probability down from above.
4. A round whose loss is not known is booked at its worst: no loss from below, a loss of 1 from above.
5. A round that the expert refuses is fair: it counts as a loss of m where it is seen, so that both bets have mean 0
   (MATH section 13).
"""

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

# Stakes of the gamblers (θ). From below the best one is about the excess of the mean over m, so it may be small.
FROM_BELOW = tuple(0.7 * 0.5**power for power in range(9))
FROM_ABOVE = (0.03, *(0.9 * (part + 0.5) / 4 for part in range(4)))
# Losses are kept in steps of 1/256, and probabilities in steps of about 1 %.
LOSS_STEPS = 256
PROBABILITY_STEPS = 64
# What is never known counts as if it had been seen with this probability.
LEAST_PROBABILITY = 1e-6
# Instead of a loss: the expert refused.
FAIR = -1
# Bounds are found to this precision, and then moved away from the estimate.
PRECISION = 1e-5

Cell = tuple[int, int]


def probability_code(probability: float) -> int:
    """The cell of a probability: 0 for certainty, then 64 for each halving.

    >>> probability_code(1.0), probability_code(0.5), probability_code(0.05)
    (0, 65, 277)
    """
    return 0 if probability == 1.0 else 1 + math.floor(-math.log2(probability) * PROBABILITY_STEPS)


def _largest(code: int) -> float:
    return math.exp2(-max(code - 1, 0) / PROBABILITY_STEPS)


def _smallest(code: int) -> float:
    return math.exp2(-code / PROBABILITY_STEPS)


class MeanLoss:
    """Counts of rounds, and the bounds that follow from them.

    Attributes
    ----------
    rounds: all rounds; from below each counts as a round without loss until its loss is credited.
    seen: rounds whose loss was credited, from below, by probability and loss.
    booked: rounds from above, by probability and loss.

    >>> loss = MeanLoss()
    >>> for _ in range(200):
    ...     loss.decided(1.0, audited=True)
    ...     loss.win(1.0, 0.0, audited=True)
    >>> loss.at_least(0.1), 0.01 < loss.at_most(0.1) < 0.03
    (0.0, True)
    """

    __slots__ = ("booked", "rounds", "seen")

    def __init__(self) -> None:
        self.rounds = 0
        self.seen: Counter[Cell] = Counter()
        self.booked: Counter[Cell] = Counter()

    def decided(self, probability: float, *, audited: bool) -> None:
        """Book a round at its worst.

        Parameters
        ----------
        probability: with which its loss is seen.
        audited: whether it is going to be seen.
        """
        self.rounds += 1
        if audited:
            self.booked[probability_code(probability), LOSS_STEPS] += 1

    def win(self, probability: float, loss: float | None, *, audited: bool) -> None:
        """Replace the worst of a round by what became of it.

        Parameters
        ----------
        probability: with which its loss is seen.
        loss: its loss; none if the expert refused, or if it is not seen.
        audited: whether it was to be seen.
        """
        code = probability_code(probability)
        if not audited:
            self.booked[code, 0] += 1
            return
        below, above = FAIR, FAIR
        if loss is not None:
            below, above = math.floor(loss * LOSS_STEPS), math.ceil(loss * LOSS_STEPS)
        self.booked[code, LOSS_STEPS] -= 1
        self.booked[code, above] += 1
        if below:
            self.seen[code, below] += 1

    def charge(self) -> None:
        """Book a round of which nothing is ever going to be known, at the worst that it could have been."""
        self.decided(LEAST_PROBABILITY, audited=True)

    def at_least(self, alpha: float) -> float:
        """The mean is at least this, at all times with probability at least 1 − α."""
        bar = -math.log(alpha)
        if not self.seen or self.log_money_below(PRECISION) < bar:
            return 0.0
        low, high = PRECISION, 1.0
        while high - low > PRECISION:
            middle = (low + high) / 2
            low, high = (middle, high) if self.log_money_below(middle) >= bar else (low, middle)
        return low

    def at_most(self, alpha: float) -> float:
        """The mean is at most this, at all times with probability at least 1 − α."""
        bar = -math.log(alpha)
        if self._from_above(1.0) < bar:
            return 1.0
        low, high = 0.0, 1.0
        while high - low > PRECISION:
            middle = (low + high) / 2
            low, high = (low, middle) if self._from_above(middle) >= bar else (middle, high)
        return high

    def state(self) -> dict[str, Any]:
        """All that a later start needs, as JSON values."""
        return {"rounds": self.rounds, "seen": _rows(self.seen), "booked": _rows(self.booked)}

    @classmethod
    def load(cls, state: Mapping[str, Any]) -> "MeanLoss":
        """The counts that ``state`` returned."""
        loss = cls()
        loss.rounds = state["rounds"]
        loss.seen, loss.booked = (
            Counter({(code, step): count for code, step, count in state[name]}) for name in ("seen", "booked")
        )
        return loss

    def log_money_below(self, mean: float) -> float:
        """The logarithm of the money of those who bet that the mean is above this one."""
        without = self.rounds - self.seen.total()
        logs = []
        for stake in FROM_BELOW:
            log = without * math.log1p(-stake)
            for (code, step), count in self.seen.items():
                over = 1.0 if step == FAIR else step / LOSS_STEPS / mean
                log += count * math.log1p(stake * (over / _largest(code) - 1.0))
            logs.append(log)
        return _log_mean(logs)

    def _from_above(self, mean: float) -> float:
        """The logarithm of the money of those who bet that the mean is below this one."""
        logs = []
        for stake in FROM_ABOVE:
            log = 0.0
            for (code, step), count in self.booked.items():
                # A fair round is taken at a mean of 1, where it costs most, so that the money rises in the mean.
                worth = _smallest(code) - 1.0 if step == FAIR else _smallest(code) * mean - step / LOSS_STEPS
                log += count * math.log1p(stake * worth)
            logs.append(log)
        return _log_mean(logs)


def _rows(cells: Counter[Cell]) -> list[list[int]]:
    return [[*cell, count] for cell, count in sorted(cells.items()) if count]


def _log_mean(logs: list[float]) -> float:
    most = max(logs)
    return most + math.log(math.fsum(math.exp(log - most) for log in logs) / len(logs))
