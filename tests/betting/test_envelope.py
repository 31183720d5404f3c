"""The envelope of a cascade's loss, and the wealth that bets on it (MATH section 15)."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpac.betting.bounds.fixed_sample import FRACTIONS
from bpac.betting.ledgers.levels import EvenLevels
from bpac.betting.payoff import Terms
from bpac.betting.wealth.envelope import EnvelopeWealth, Steps, envelope
from bpac.routing.cascade.bettor import Seen

GRID = EvenLevels(11)
TERMS = Terms(epsilon=0.1, floor=0.05)
tenths = st.integers(0, 10).map(lambda n: n / 10)
answers = st.lists(st.tuples(tenths, st.sampled_from([0.0, 0.3, 0.5, 1.0])), min_size=1, max_size=4)


def loss_at(values: list[float], losses: list[float], threshold: float) -> float:
    """The loss of the answer that is given at a threshold: of the first below it, and 0 if it is the reference's."""
    return next((loss for value, loss in zip(values, losses, strict=True) if value < threshold), 0.0)


def at(steps: Steps, threshold: float) -> float:
    """The loss at a threshold."""
    return max((loss for value, loss in steps if value < threshold), default=0.0)


@given(answers)
def test_the_envelope_is_the_largest_loss_at_any_threshold_up_to_one(rows: list[tuple[float, float]]) -> None:
    """The steps give the running maximum of the loss over thresholds, and rise in both columns."""
    values, losses = [value for value, _ in rows], [loss for _, loss in rows]
    steps = envelope(values, losses)
    for n in range(11):
        largest = max(loss_at(values, losses, k / 10) for k in range(n + 1))
        assert at(steps, n / 10) == largest
    assert steps == sorted(steps)
    assert [loss for _, loss in steps] == sorted({loss for _, loss in steps})


def wealth(*, latched: bool = True) -> EnvelopeWealth:
    """A fresh wealth."""
    return EnvelopeWealth(TERMS, -math.log(0.1), FRACTIONS, GRID, latched=latched)


@pytest.mark.no_cover
@given(st.lists(st.tuples(answers, st.sampled_from([1.0, 0.5])), max_size=20))
def test_wealth_is_the_mean_of_the_gamblers_products(rounds: list[tuple[list[tuple[float, float]], float]]) -> None:
    """At every threshold the wealth is what a slow computation from the definition gives."""
    kept = wealth()
    logs = [[0.0] * 11 for _ in FRACTIONS]
    for rows, propensity in rounds:
        steps = envelope([value for value, _ in rows], [loss for _, loss in rows])
        kept.decided(Seen(0.5, True))  # type: ignore[arg-type]
        kept.book(steps, propensity, 0.5)
        bound = TERMS.payoff_bound(0.5)
        for gambler, fraction in enumerate(FRACTIONS):
            for n in range(11):
                payoff = TERMS.payoff(at(steps, n / 10), propensity)
                logs[gambler][n] += math.log(1.0 + fraction * payoff / bound)
    for n in range(11):
        expected = math.log(sum(math.exp(logs[gambler][n]) for gambler in range(len(FRACTIONS))) / len(FRACTIONS))
        assert math.isclose(kept.log_wealth(n / 10), expected, abs_tol=1e-8)


@pytest.mark.no_cover
@given(answers, st.lists(answers, max_size=10))
def test_what_is_taken_out_leaves_no_trace(
    charged: list[tuple[float, float]], rounds: list[list[tuple[float, float]]]
) -> None:
    """A wealth from which a booking was taken out has the same bits as one that never had it."""
    one, other = wealth(latched=False), wealth(latched=False)
    extra = envelope([value for value, _ in charged], [loss for _, loss in charged])
    one.book(extra, 0.5, 0.5)
    for rows in rounds:
        steps = envelope([value for value, _ in rows], [loss for _, loss in rows])
        for kept in (one, other):
            kept.decided(Seen(0.5, True))  # type: ignore[arg-type]
            kept.book(steps, 1.0, 0.5)
    one.unbook(extra, 0.5, 0.5)
    assert one.state() == other.state()


def test_a_revocable_threshold_falls_with_the_wealth() -> None:
    """A loss below the threshold lowers it unless it is latched."""
    falling, latched = wealth(latched=False), wealth()
    for kept in (falling, latched):
        for _ in range(60):
            kept.decided(Seen(1.0, False))  # type: ignore[arg-type]
        assert kept.threshold == 1.0
        for _ in range(30):
            kept.book([(0.2, 0.5), (0.6, 1.0)], 1.0, 1.0)
    assert falling.threshold == 0.2
    assert latched.threshold == 1.0
