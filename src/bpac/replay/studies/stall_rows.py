"""The stall: safe thresholds at which the paper's bet loses money for ever (MATH section 2)."""

from dataclasses import dataclass

from bpac.betting.payoff import Terms
from bpac.betting.wealth.bets import AdaptiveBet
from bpac.betting.wealth.growth import best_bet, log_growth, settled_bet

# The risks of the table in the specification.
TABLE_RISKS = (0.020, 0.030, 0.040, 0.045, 0.050, 0.060)


@dataclass(frozen=True, slots=True)
class StallRow:
    """Log-growth per round at a threshold of that risk."""

    risk: float
    paper_bet: float
    paper_growth: float
    best_growth: float


def stall_rows(risks: tuple[float, ...] = TABLE_RISKS, epsilon: float = 0.08, rate: float = 0.05) -> list[StallRow]:
    """What the paper's bet and the best bet win per round, for thresholds of these risks.

    >>> [round(row.paper_growth, 5) for row in stall_rows((0.03, 0.04))]
    [0.00016, -0.00106]
    """
    terms = Terms(epsilon, rate)
    rows = []
    for risk in risks:
        bet = settled_bet(terms, risk, rate, AdaptiveBet())
        best = log_growth(terms, risk, rate, best_bet(terms, risk, rate))
        rows.append(StallRow(risk, bet, log_growth(terms, risk, rate, bet), best))
    return rows
