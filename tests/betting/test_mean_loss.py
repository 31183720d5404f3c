"""Bounds on the mean loss of all drafts, from audits with known probabilities."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpac.betting.bounds.fixed_sample import clopper_pearson_upper
from bpac.betting.bounds.mean_loss import FAIR, FROM_ABOVE, FROM_BELOW, LOSS_STEPS, MeanLoss, probability_code

Seen = tuple[float, float | None]
# (probability of an audit, its loss; none if the draft was kept)
rounds = st.lists(st.tuples(st.floats(0.01, 1.0), st.none() | st.floats(0.0, 1.0)), max_size=30)
STREAMS, LENGTH, ALPHA = 400, 400, 0.1


def after(seen: list[Seen]) -> MeanLoss:
    """The bounds after some rounds."""
    loss = MeanLoss()
    for probability, value in seen:
        loss.decided(probability, audited=value is not None)
        loss.win(probability, value, audited=value is not None)
    return loss


def money(seen: list[Seen], mean: float, *, above: bool) -> float:
    """The money of the bets, factor by factor, from the definition and without rounding."""
    total = 0.0
    stakes = FROM_ABOVE if above else FROM_BELOW
    for stake in stakes:
        product = 1.0
        for probability, value in seen:
            weighted = 0.0 if value is None else value / probability
            payoff = probability * (mean - weighted) if above else weighted / mean - 1.0
            product *= 1.0 + stake * payoff
        total += product / len(stakes)
    return total


@given(rounds, st.floats(0.02, 0.9))
def test_rounding_never_helps_a_bet(seen: list[Seen], mean: float) -> None:
    """What is kept of a round is never worth more than the round itself: neither bound is too good."""
    loss = after(seen)
    assert math.exp(loss.log_money_below(mean)) <= money(seen, mean, above=False) * (1.0 + 1e-9)
    assert math.exp(loss._from_above(mean)) <= money(seen, mean, above=True) * (1.0 + 1e-9)


@pytest.mark.no_cover
@given(rounds, st.floats(0.001, 0.5))
def test_bounds_are_in_order_and_survive_a_snapshot(seen: list[Seen], alpha: float) -> None:
    """Both are fractions, and counts that were saved lead to the same bounds."""
    loss = after(seen)
    assert 0.0 <= loss.at_least(alpha) <= 1.0
    assert 0.0 <= loss.at_most(alpha) <= 1.0
    again = MeanLoss.load(loss.state())
    assert (again.at_least(alpha), again.at_most(alpha)) == (loss.at_least(alpha), loss.at_most(alpha))


def test_what_is_not_known_is_at_its_worst() -> None:
    """An open audit is no loss from below and a loss of 1 from above; a ticket that is lost, for good."""
    known, open_, lost = (after([(1.0, 0.0)] * 100) for _ in range(3))
    known.decided(1.0, audited=True)
    known.win(1.0, 1.0, audited=True)
    open_.decided(1.0, audited=True)
    lost.charge()
    assert open_.log_money_below(0.05) == lost.log_money_below(0.05) < known.log_money_below(0.05)
    assert (
        lost.at_most(ALPHA) >= open_.at_most(ALPHA) == known.at_most(ALPHA) > after([(1.0, 0.0)] * 101).at_most(ALPHA)
    )


def test_a_refused_audit_is_fair() -> None:
    """Without a coin it changes nothing from above; with one it pays back what the kept drafts around it took."""
    loss = after([(1.0, 0.0)] * 50)
    before = loss.at_most(ALPHA)
    loss.decided(1.0, audited=True)
    loss.win(1.0, None, audited=True)
    assert loss.booked[0, FAIR] == 1
    assert loss.at_most(ALPHA) == before
    for probability in (1.0, 0.5, 0.1):
        refused, kept = MeanLoss(), MeanLoss()
        refused.decided(probability, audited=True)
        refused.win(probability, None, audited=True)
        kept.decided(probability, audited=False)
        kept.win(probability, None, audited=False)
        for bet in ("log_money_below", "_from_above"):
            mean = probability * math.exp(getattr(refused, bet)(0.05))
            mean += (1.0 - probability) * math.exp(getattr(kept, bet)(0.05))
            assert mean <= 1.0 + 1e-9


@pytest.mark.no_cover
@pytest.mark.parametrize("probability", [1.0, 0.2])
def test_the_bounds_hold_at_all_times(probability: float) -> None:
    """Each fails at some time in at most a share α of streams; the plain mean, taken as a verdict, fails in most.

    A false "no" is a lower bound above the mean, and a false "yes" an upper bound below it.
    """
    random_source, mean, wrong = random.Random(5), 0.1, [0, 0, 0]
    bar = -math.log(ALPHA)
    for _ in range(STREAMS):
        loss, failed, total = MeanLoss(), [False] * 3, 0.0
        for number in range(1, LENGTH + 1):
            audited, value = random_source.random() < probability, float(random_source.random() < mean)
            loss.decided(probability, audited=audited)
            loss.win(probability, value if audited else None, audited=audited)
            total += audited * value / probability
            if audited and value:
                failed[0] |= loss.log_money_below(mean) >= bar
            elif not number % 10:
                failed[1] |= loss._from_above(mean) >= bar
            failed[2] |= number >= 50 and total / number > 1.2 * mean
        wrong = [count + one for count, one in zip(wrong, failed, strict=True)]
    # The largest number of failures that is likely enough if the chance is α.
    assert clopper_pearson_upper(STREAMS - wrong[0], STREAMS, 0.001) >= 1.0 - ALPHA
    assert clopper_pearson_upper(STREAMS - wrong[1], STREAMS, 0.001) >= 1.0 - ALPHA
    assert clopper_pearson_upper(STREAMS - wrong[2], STREAMS, 0.001) < 1.0 - ALPHA


def test_the_bounds_close_in_on_the_mean() -> None:
    """They are of use: after 3,000 audits of a mean of 0.1, both are within 0.03 of it."""
    source = random.Random(1)
    loss = after([(1.0, float(source.random() < 0.1)) for _ in range(3000)])
    assert 0.07 < loss.at_least(ALPHA) < 0.1 < loss.at_most(ALPHA) < 0.13
    assert after([(1.0, 1.0)] * 200).at_least(ALPHA) > 0.9
    assert probability_code(1.0) == 0
    assert LOSS_STEPS * (1 / LOSS_STEPS) == 1.0
