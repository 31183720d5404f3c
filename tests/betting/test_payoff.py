import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpac.betting.payoff import LOG_UNIT, Terms, log_units
from bpac.errors import SettingsError

rates = st.floats(0.001, 0.999)


@given(factor=st.floats(1e-6, 1e6))
def test_log_units_never_overstate(factor: float) -> None:
    """A logarithm in whole units is at most the real one, and less than one unit (and rounding) below it."""
    exact = math.log(factor) * LOG_UNIT
    assert exact - 1.001 <= log_units(factor) <= exact


@given(epsilon=rates, floor=rates, shadow=st.booleans(), loss=st.floats(0, 1), above=st.floats(0, 1))
def test_no_payoff_is_below_its_bound(epsilon: float, floor: float, shadow: bool, loss: float, above: float) -> None:
    """``−M ≤ D ≤ ε`` whatever the loss and the propensity, as long as that is at least the floor (MATH 1)."""
    terms = Terms(epsilon, floor, shadow)
    propensity = floor + above * (1.0 - floor)
    payoff = terms.payoff(loss, propensity)
    assert -terms.payoff_bound(floor) - 1e-9 <= payoff <= epsilon
    assert terms.weighted_loss(loss, propensity) == pytest.approx(epsilon - payoff)


def test_kept_share_is_1_with_shadow_audits() -> None:
    """κ is 1 − ρ_min where the expert's answer is served, and 1 with shadow audits (MATH 6)."""
    assert Terms(0.1, 0.05).kept_share == 0.95
    assert Terms(0.1, 0.05, shadow=True).kept_share == 1.0


@pytest.mark.parametrize(("epsilon", "floor"), [(0.0, 0.1), (1.0, 0.1), (0.1, 1.0), (0.1, -0.1), (0.1, math.nan)])
def test_terms_out_of_range_are_refused(epsilon: float, floor: float) -> None:
    """ε lies in (0, 1) and the floor in [0, 1)."""
    with pytest.raises(SettingsError, match=r"epsilon|floor"):
        Terms(epsilon, floor)
