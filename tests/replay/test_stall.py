"""The stall of the paper's bet, which the portfolio does not have."""

import numpy as np
import pytest

from bpac.replay.replay import Replay
from bpac.replay.router_factory import RouterFactory
from bpac.replay.simulation.laws import PowerLaw
from bpac.replay.studies.simulated.stall import stall_rows
from bpac.replay.tables.table import Table
from bpac.routing.policies import named_policy

# Risk, the paper's bet, log-growth per round with it, log-growth with the best bet.
SPECIFIED = [
    (0.020, 0.0476, +0.00137, +0.00170),
    (0.030, 0.0476, +0.00016, +0.00109),
    (0.040, 0.0476, -0.00106, +0.00065),
    (0.045, 0.0410, -0.00027, +0.00048),
    (0.050, 0.0316, +0.00012, +0.00034),
    (0.060, 0.0176, +0.00012, +0.00015),
]


def test_bets_and_growth_rates_are_the_specified_ones() -> None:
    """They agree with the specification to its last digit."""
    computed = [(row.risk, row.paper_bet, row.paper_growth, row.best_growth) for row in stall_rows()]
    for row, expected in zip(computed, SPECIFIED, strict=True):
        assert row == pytest.approx(expected, abs=0.6e-5 if expected[1] == row[1] else 0.6e-4)
        assert row[2:] == pytest.approx(expected[2:], abs=0.6e-5)


def test_growth_agrees_with_a_simulation() -> None:
    """Simulated wealth grows at the computed rate in the long run."""
    risk, rate, kept = 0.04, 0.05, 0.95
    rng = np.random.default_rng(0)
    losses = rng.random(400_000) < rate * risk / kept
    row = next(row for row in stall_rows() if row.risk == risk)
    payoffs = np.where(losses, 0.08 - kept / rate, 0.08)
    growth = float(np.log1p(row.paper_bet * payoffs).mean())
    assert growth == pytest.approx(row.paper_growth, abs=4e-4)
    assert growth < 0.0


@pytest.mark.promise
@pytest.mark.parametrize(("policy", "passes"), [("paper", False), ("portfolio", True)])
def test_only_the_portfolio_passes_the_stalled_thresholds(policy: str, passes: bool) -> None:
    """After 40,000 rounds the paper's threshold still has a risk below 0.048, and the portfolio's has a higher one.

    Thresholds have risks from 0 to 0.19, and risks up to 0.08 are allowed.
    """
    law = PowerLaw(most=0.2, power=0.0)
    for seed in range(3):
        uncertainty, loss = law.draw(40_000, np.random.default_rng(seed))
        table = Table(uncertainty, loss)
        _, path = Replay(table, RouterFactory(named_policy(policy), 0.08, 0.1), order="given", seed=seed).run(
            0, trace=True
        )
        late = [0.95 * law.risk(decision.threshold) for decision in path.decisions[30_000:]]
        assert (min(late) > 0.048) is passes
        assert (max(late) < 0.048) is not passes
