"""Algorithm 1 of the paper as one would first write it with numpy: what times are compared with."""

from collections.abc import Sequence

import numpy as np


def transcription(
    uncertainties: Sequence[float],
    losses: Sequence[float],
    coins: Sequence[float],
    epsilon: float = 0.08,
    alpha: float = 0.1,
) -> float:
    """Play a whole stream at 1,001 thresholds and return the share of expert calls."""
    grid = np.linspace(0.0, 1.0, 1001)
    wealth = np.ones(1001)
    payoffs = np.zeros(1001)
    squares = np.zeros(1001)
    threshold, calls = 0.0, 0
    for step, (uncertainty, loss, coin) in enumerate(zip(uncertainties, losses, coins, strict=True), start=1):
        rate = 0.7 if step <= 200 else 0.05
        propensity = 1.0 if uncertainty >= threshold else rate
        called = coin < propensity
        weighted = 0.95 * (loss / propensity) * called * (uncertainty < grid)
        payoff = epsilon - weighted
        bound = max(epsilon, 0.95 / rate - epsilon)
        bet = np.clip(payoffs / (squares + 1.0), 0.0, 0.9 / bound)
        wealth = wealth * (1.0 + bet * payoff)
        payoffs = payoffs + payoff
        squares = squares + payoff**2
        reached = wealth >= 1.0 / alpha
        first_short = len(grid) if reached.all() else int(np.argmin(reached))
        threshold = grid[first_short - 1] if first_short else 0.0
        calls += called
    return calls / len(uncertainties)
