"""How fast wealth grows at a threshold with a constant bet: the paper's bet beside the best one."""

import math

from bpac.betting.payoff import Terms
from bpac.betting.wealth.bets import AdaptiveBet


def log_growth(terms: Terms, risk: float, rate: float, bet: float) -> float:
    """Expected log-growth per round at a threshold whose drafts are all explored at ``rate``.

    Parameters
    ----------
    terms: the terms of the bets.
    risk: the threshold's risk (R), of losses that are 0 or 1.
    rate: exploration rate (ρ).
    bet: the stake (λ).
    """
    chance, cost = _loss(terms, risk, rate)
    return (1.0 - chance) * math.log1p(bet * terms.epsilon) + chance * math.log1p(-bet * cost)


def settled_bet(terms: Terms, risk: float, rate: float, rule: AdaptiveBet) -> float:
    """Where the paper's bet settles: ``E[D]/E[D²]``, capped.

    >>> terms = Terms(epsilon=0.08, floor=0.05)
    >>> round(settled_bet(terms, 0.05, 0.05, AdaptiveBet()), 4)
    0.0316
    """
    chance, cost = _loss(terms, risk, rate)
    mean = terms.epsilon - risk
    square = (1.0 - chance) * terms.epsilon**2 + chance * cost**2
    return min(max(mean / square, 0.0), rule.most(terms.payoff_bound(rate)))


def best_bet(terms: Terms, risk: float, rate: float) -> float:
    """The bet with the largest log-growth (Kelly's).

    >>> best_bet(Terms(epsilon=0.08, floor=0.05), 0.08, 0.05)
    0.0
    """
    chance, cost = _loss(terms, risk, rate)
    return max(0.0, ((1.0 - chance) * terms.epsilon - chance * cost) / (terms.epsilon * cost))


def _loss(terms: Terms, risk: float, rate: float) -> tuple[float, float]:
    """The chance of seeing a loss in a round, and what one costs per unit staked."""
    return rate * risk / terms.kept_share, -terms.payoff(1.0, rate)
