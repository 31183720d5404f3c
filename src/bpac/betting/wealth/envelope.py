"""Wealth of a bet on a loss that rises with the threshold in several steps (MATH section 15)."""

from collections.abc import Sequence
from operator import sub as minus

from bpac.betting.wealth.portfolio import PortfolioWealth

# Where the loss rises, and to what: scores in increasing order, with increasing losses.
Steps = Sequence[tuple[float, float]]


def envelope(values: Sequence[float], losses: Sequence[float]) -> list[tuple[float, float]]:
    """The steps of the largest loss at any threshold up to ``s``, as a function of ``s``.

    At threshold ``s`` a cascade gives the first answer whose value is below it. So only the values matter that are
    lower than all before them. The loss at ``s`` need not rise with ``s``; its largest value up to ``s`` does.

    Parameters
    ----------
    values: value of each answer, in the order in which they are made.
    losses: loss of each answer.

    >>> envelope([0.6, 0.8, 0.2], [0.0, 1.0, 1.0])
    [(0.2, 1.0)]
    >>> envelope([0.6, 0.4, 0.2], [1.0, 0.0, 0.5])
    [(0.2, 0.5), (0.6, 1.0)]
    """
    lows: list[tuple[float, float]] = []
    lowest = 1.0
    for value, loss in zip(values, losses, strict=True):
        if value < lowest:
            lowest = value
            lows.append((value, loss))
    steps: list[tuple[float, float]] = []
    most = 0.0
    for value, loss in reversed(lows):
        if loss > most:
            most = loss
            steps.append((value, loss))
    return steps


class EnvelopeWealth(PortfolioWealth):
    """Portfolio wealth in which a round may book a loss that rises in several steps."""

    __slots__ = ()

    def book(self, steps: Steps, propensity: float, least_propensity: float) -> None:
        """Book the loss of an audited round; without steps the round is won.

        Parameters
        ----------
        steps: where the loss rises, and to what.
        propensity, least_propensity: with which the round was audited (π, p).
        """
        for code, amounts in self._amounts(steps, propensity, least_propensity):
            self._table.add(code, amounts)
            self._fall(code)
        if self._rounds >= self._next_check:
            self._climb()

    def unbook(self, steps: Steps, propensity: float, least_propensity: float) -> None:
        """Take out what ``book`` booked; thresholds may rise."""
        lowest = self._table.top
        for code, amounts in self._amounts(steps, propensity, least_propensity):
            self._table.add(code, [-amount for amount in amounts])
            lowest = min(lowest, code)
        # The stretch just above the limit sees losses up to the limit, and no others.
        if lowest <= self._table.limit:
            self._climb()

    def _amounts(self, steps: Steps, propensity: float, least_propensity: float) -> list[tuple[int, list[int]]]:
        """What each step takes from the gamblers' log-wealth, beyond the steps below it."""
        booked: list[tuple[int, list[int]]] = []
        before = [0] * len(self._fractions)
        for value, loss in steps:
            changes = self._changes(propensity, least_propensity, loss)
            # A loss that is larger takes more from the bolder gamblers, so the last amount stays the lowest.
            booked.append((self._level(value), list(map(minus, changes, before))))
            before = changes
        return booked

    def _fall(self, code: int) -> None:
        if not self.latched and code < self._table.limit:
            self._collect()
            self._next_check = 1
            self._table.fall(self._passes)
            self.threshold = self._levels.value(self._table.limit)
