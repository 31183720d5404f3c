import pytest

from bpac.betting.payoff import Terms
from bpac.betting.wealth.bets import AdaptiveBet
from bpac.betting.wealth.growth import best_bet, log_growth, settled_bet

TERMS = Terms(epsilon=0.08, floor=0.05)


@pytest.mark.parametrize(
    ("risk", "bet", "paper", "best"),
    [
        (0.020, 0.0476, 0.00137, 0.00170),
        (0.030, 0.0476, 0.00016, 0.00109),
        (0.040, 0.0476, -0.00106, 0.00065),
        (0.045, 0.0410, -0.00027, 0.00048),
        (0.050, 0.0316, 0.00012, 0.00034),
        (0.060, 0.0176, 0.00012, 0.00015),
    ],
)
def test_the_papers_bet_stalls_where_the_specification_says(risk: float, bet: float, paper: float, best: float) -> None:
    """Bets and growth are those of the specification: safe thresholds between 0.031 and 0.048 lose without end."""
    settled = settled_bet(TERMS, risk, 0.05, AdaptiveBet())
    assert settled == pytest.approx(bet, abs=5e-5)
    assert log_growth(TERMS, risk, 0.05, settled) == pytest.approx(paper, abs=6e-6)
    assert log_growth(TERMS, risk, 0.05, best_bet(TERMS, risk, 0.05)) == pytest.approx(best, abs=6e-6)


@pytest.mark.parametrize("risk", [0.01, 0.03, 0.05, 0.079])
def test_no_bet_grows_faster_than_the_best(risk: float) -> None:
    """Kelly's bet beats every other on a fine grid of bets."""
    best = best_bet(TERMS, risk, 0.05)
    others = [k / 20_000 for k in range(1050)]
    assert max(log_growth(TERMS, risk, 0.05, bet) for bet in others) <= log_growth(TERMS, risk, 0.05, best) + 1e-12
