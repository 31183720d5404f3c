"""Wealth at every point of a fixed grid (MATH section 2): the paper's Algorithm 1."""

from typing import Any

import numpy as np

from bpac.betting.ledgers.levels import EvenLevels
from bpac.betting.payoff import Terms
from bpac.betting.wealth.bets import Bet
from bpac.betting.wealth.thresholds import ThresholdRule
from bpac.errors import SettingsError

# The most that one round may cost, as a share of the wealth.
MOST_AT_STAKE = 0.999
# A factor lies between 0.001 and 2: after this many of them a double is still far from its ends.
RESCALE_EVERY = 64


class GridWealth:
    """Wealth of the paper's gambler at every grid point, kept as mantissa and binary exponent.

    The exponent cannot overflow; the mantissa saves a thousand calls of ``log`` per round. Bets depend on the order of
    rounds, so rounds are settled in decision order.

    Parameters
    ----------
    terms: the terms of the bets.
    alpha: the promised chance of failure.
    bet: how much is staked.
    rule: how the threshold follows from the wealth.
    levels: the grid.
    """

    def __init__(self, terms: Terms, alpha: float, bet: Bet, rule: ThresholdRule, levels: EvenLevels) -> None:
        bound = terms.payoff_bound(terms.floor)
        if bet.most(bound) * bound > MOST_AT_STAKE:
            raise SettingsError(
                f"{bet} can lose more than {MOST_AT_STAKE} of its wealth in a round when the expert is called "
                f"at rate {terms.floor}: lower the bet or raise the exploration floor"
            )
        self._terms = terms
        self._bet = bet
        self._rule = rule
        self._levels = levels
        count = levels.count
        self._log_bars = rule.log_bars(count, alpha)
        # ε ΣD rather than ΣD: with stakes scaled alike, a round without a loss needs one product less.
        # It never rises with the threshold, because a loss counts for all above it.
        self._payoffs = np.zeros(count)
        self._squares = np.ones(count)
        self._mantissa = np.ones(count)
        self._exponent = np.zeros(count, dtype=np.int64)
        self._settled = 0
        self._index = -1
        self._stakes = np.empty(count)
        self._ratio = np.empty(count)
        self._rate = 0.0
        self._most = 0.0
        self._set_bars()
        self._set_points_bet_on(count)
        self.threshold = 0.0

    def settle(self, uncertainty: float, propensity: float, least_rate: float, loss: float) -> None:
        """Apply one round, the next in decision order.

        Parameters
        ----------
        uncertainty: score of the draft.
        propensity: probability with which the expert was called.
        least_rate: exploration rate of the round (ρ).
        loss: loss of the draft if the expert was called, else 0.
        """
        epsilon = self._terms.epsilon
        if least_rate != self._rate:
            self._rate = least_rate
            self._most = epsilon * self._bet.most(self._terms.payoff_bound(least_rate))
        payoffs, squares, mantissa, stakes = self._betting
        self._bet.stake(payoffs, squares, self._most, stakes)
        np.multiply(stakes, mantissa, out=stakes)
        if loss > 0.0:
            ratio, above = self._ratio, self._levels.code(uncertainty) + 1
            ratio[:above] = 1.0
            ratio[above:] = self._terms.payoff(loss, propensity) / epsilon
            np.multiply(stakes, ratio[: len(stakes)], out=stakes)
            np.add(mantissa, stakes, out=mantissa)
            ratio *= epsilon * epsilon
            np.add(self._payoffs, ratio, out=self._payoffs)
            ratio *= ratio
            ratio /= epsilon * epsilon
            np.add(self._squares, ratio, out=self._squares)
            self._set_points_bet_on(self._bet.points_bet_on(self._payoffs, 0))
            self._index = self._rule.after_loss(self._mantissa >= self._bars)
        else:
            np.add(mantissa, stakes, out=mantissa)
            np.add(self._payoffs, epsilon * epsilon, out=self._payoffs)
            np.add(self._squares, epsilon * epsilon, out=self._squares)
            points_bet_on = self._bet.points_bet_on(self._payoffs, len(stakes))
            if points_bet_on != len(stakes):
                self._set_points_bet_on(points_bet_on)
            self._index = self._rule.after_win(self._index, self._mantissa, self._bars)
        self._settled += 1
        if self._settled % RESCALE_EVERY == 0:
            self._rescale()
        self.threshold = self._levels.value(max(self._index, 0))

    def log_wealth(self, threshold: float) -> float:
        """Log-wealth at the largest grid point that is not above ``threshold`` (log K)."""
        code = self._levels.code(threshold)
        return float(np.log(self._mantissa[code]) + self._exponent[code] * np.log(2.0))

    def state(self) -> dict[str, Any]:
        """All that a later start needs, as JSON values."""
        return {
            "settled": self._settled,
            "payoffs": self._payoffs.tolist(),
            "squares": self._squares.tolist(),
            "mantissa": self._mantissa.tolist(),
            "exponent": self._exponent.tolist(),
            "index": self._index,
        }

    def load(self, state: dict[str, Any]) -> None:
        """Take over a state that ``state`` returned."""
        self._settled = state["settled"]
        self._payoffs[:] = state["payoffs"]
        self._squares[:] = state["squares"]
        self._mantissa[:] = state["mantissa"]
        self._exponent[:] = state["exponent"]
        self._set_bars()
        self._set_points_bet_on(self._bet.points_bet_on(self._payoffs, 0))
        self._index = state["index"]
        self.threshold = self._levels.value(max(self._index, 0))

    def _rescale(self) -> None:
        self._mantissa[:], exponent = np.frexp(self._mantissa)
        self._exponent += exponent
        self._set_bars()

    def _set_points_bet_on(self, count: int) -> None:
        """Look at the lowest ``count`` points only: there is no stake on the others."""
        self._betting = (self._payoffs[:count], self._squares[:count], self._mantissa[:count], self._stakes[:count])

    def _set_bars(self) -> None:
        """Express the bars in units of each point's exponent; 0 and infinity are valid results."""
        with np.errstate(over="ignore", under="ignore"):
            self._bars = np.exp(self._log_bars - self._exponent * np.log(2.0))
