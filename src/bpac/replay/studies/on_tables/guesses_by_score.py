"""The upper bound of the certificate with a guess for each score, to see what that would be worth.

A guess may depend on everything before the coin. Here it is twice the average loss that audits have found at similar
scores so far: audits by coin, and those of drafts that went to the expert for their score.
"""

import math

from bpac.betting.bounds.mixtures import LARGEST_GUESS, RATE_MIXTURES, upper_root
from bpac.betting.payoff import Terms
from bpac.routing.decision import Decision

BINS = 10
# The average loss at a score begins as ε, with this weight in audits.
PRIOR = 400.0


class GuessesByScore:
    """The upper bound on the loss served, with guesses by score; for audits whose loss is known at once.

    Parameters
    ----------
    terms: the terms of the bets.
    alpha: chance of failure of the bound.
    """

    def __init__(self, terms: Terms, alpha: float) -> None:
        mixture = RATE_MIXTURES["sharp"]
        self._multiple = mixture.guess
        self._rates = mixture.rates(terms.floor)
        # The weights, and what each rate has won since.
        self._logs = list(mixture.log_weights())
        self._log_bar = -math.log(alpha)
        self._losses = [PRIOR * terms.epsilon] * BINS
        self._audits = [PRIOR] * BINS
        self._guessed = 0.0

    def add(self, decision: Decision, loss: float) -> None:
        """Add a round; its loss is used if the expert was called, and not otherwise."""
        at, propensity = min(int(decision.uncertainty * BINS), BINS - 1), decision.propensity
        guess = min(self._multiple * self._losses[at] / self._audits[at], LARGEST_GUESS)
        if decision.serve_draft:
            self._guessed += guess
        if not decision.call_expert:
            return
        if propensity < 1.0:
            for which, rate in enumerate(self._rates):
                tilt = math.exp(rate * (loss - guess))
                self._logs[which] += math.log((1.0 - (1.0 - propensity) * tilt) / propensity)
        self._losses[at] += loss / propensity
        self._audits[at] += 1.0 / propensity

    def upper(self) -> float:
        """The upper bound on the loss served so far."""
        return upper_root(self._rates, self._logs, self._log_bar) + self._guessed
