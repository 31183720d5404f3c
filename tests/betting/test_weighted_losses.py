import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpac.betting.ledgers.levels import EvenLevels
from bpac.betting.ledgers.weighted_losses import SUM_UNIT, SeenLosses, WeightedLosses
from bpac.betting.payoff import Terms
from tests.betting.rounds import a_round

TERMS = Terms(0.1, 0.05)
GRID = EvenLevels(11)
audits = st.lists(
    st.tuples(st.sampled_from([0.0, 0.05, 0.3, 0.35, 0.8, 1.0]), st.sampled_from([1.0, 0.5, 0.05]), st.floats(0, 1)),
    max_size=12,
)


def largest_safe(weights: list[tuple[float, float]], most: float) -> float:
    """The largest grid point with ``Σ_{U < u} weight ≤ most``, scores rounded down to the grid."""
    grid = [GRID.value(code) for code in range(GRID.top + 1)]
    booked = [(GRID.value(GRID.code(score)), weight) for score, weight in weights]
    return max(u for u in grid if u == 0.0 or sum(weight for score, weight in booked if score < u) <= most)


@pytest.mark.no_cover
@given(audits=audits, most=st.floats(0, 30))
def test_weighted_losses_agree_with_a_plain_sum(audits: list[tuple[float, float, float]], most: float) -> None:
    """The threshold is the largest whose ``ΣZ(u)`` is small enough, as late outcomes replace their charges."""
    losses = WeightedLosses(TERMS, GRID)
    rounds = [a_round(score, propensity, step=step) for step, (score, propensity, _) in enumerate(audits)]
    units = [0.95 * loss / propensity for _, propensity, loss in audits]
    for decision in rounds:
        losses.charge(decision)
    charged = [(score, 0.95 / propensity) for score, propensity, _ in audits]
    assert losses.largest(most) <= largest_safe(charged, most)
    for decision, (_, _, loss) in zip(rounds, audits, strict=True):
        losses.refund(decision, loss)
    found = losses.largest(most)
    # Each weight is rounded up by less than one unit, so the answer lies between these two.
    slack = (len(audits) + 1) / SUM_UNIT
    weights = [(score, unit) for (score, _, _), unit in zip(audits, units, strict=True)]
    assert largest_safe(weights, most - slack) <= found <= largest_safe(weights, most + slack)


@given(audits=audits)
def test_seen_losses_ignore_charges(audits: list[tuple[float, float, float]]) -> None:
    """O-naive books unweighted losses when they are seen and nothing before (MATH 10)."""
    losses = SeenLosses(TERMS, GRID)
    rounds = [a_round(score, propensity, step=step) for step, (score, propensity, _) in enumerate(audits)]
    for decision in rounds:
        losses.charge(decision)
    assert losses.largest(0.0) == 1.0
    for decision, (_, _, loss) in zip(rounds, audits, strict=True):
        losses.refund(decision, loss)
    seen = [(score, loss) for score, _, loss in audits]
    slack = (len(audits) + 1) / SUM_UNIT
    assert largest_safe(seen, 0.7 - slack) <= losses.largest(0.7) <= largest_safe(seen, 0.7 + slack)
