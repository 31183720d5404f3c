import itertools
import json
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpac.betting.bounds.unseen import LARGEST_SHARE, RATES, UnseenSum
from bpac.betting.payoff import LOG_UNIT

Look = tuple[float, float]
# (probability of looking, value)
looks = st.lists(st.tuples(st.floats(0.05, 0.99), st.integers(1, 5000)), min_size=1, max_size=15)


def after(looked: Sequence[Look], missed: int = 10**6) -> UnseenSum:
    """A sum of which some values were seen, and so many were not."""
    unseen = UnseenSum(missed=missed)
    for propensity, value in looked:
        unseen.flip(propensity, looks=True)
        unseen.see(propensity, value)
    return unseen


def mixture(looked: Sequence[Look], rates: Sequence[float], total: float, sign: float) -> float:
    """The mean of ``E`` (MATH section 11) over all rates, of which some may have no part, factor by factor."""
    mean = 0.0
    for rate in rates:
        product = math.exp(min(sign * rate * total, 600.0)) / len(RATES)
        for propensity, value in looked:
            product *= (1.0 - (1.0 - propensity) * math.exp(sign * rate * value)) / propensity
        mean += product
    return mean


def crossing(holds: Callable[[float], bool]) -> float:
    """Where something stops holding, by bisection."""
    low, high = -1e6, 1e12
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


@pytest.mark.no_cover
@given(looks)
def test_bounds_are_where_the_mixture_reaches_its_bar(looked: list[Look]) -> None:
    """Both solve ``mean E = 1/α``, as bisection does; rates that are too large for a value seen have no part above."""
    unseen, bar = after(looked), 1.0 / 0.1
    least = crossing(lambda total: mixture(looked, RATES, total, -1.0) > bar)
    assert unseen.at_least(0.1) == pytest.approx(max(0.0, least), rel=1e-6, abs=1e-4)
    limit = LARGEST_SHARE * -math.log(1.0 - min(propensity for propensity, _ in looked))
    usable = [rate for rate in RATES if rate * max(value for _, value in looked) <= limit]
    assert unseen.ceiling == pytest.approx(limit / usable[0])
    most = crossing(lambda total: mixture(looked, usable, total, 1.0) < bar)
    assert unseen.at_most(0.1) == pytest.approx(min(most, unseen.missed * unseen.ceiling), rel=1e-6)


@given(st.floats(0.05, 0.99), st.integers(1, 20_000))
def test_every_factor_has_expectation_1(propensity: float, value: int) -> None:
    """Over the coin alone, whatever the value: above never, below by rounding only."""
    unseen = after([(propensity, value)])
    for sign, logs in ((-1.0, unseen.below), (1.0, unseen.above)):
        for rate, log in zip(RATES, logs, strict=True):
            if sign * rate * unseen.ceiling > -math.log1p(-propensity):
                continue  # too large for values up to the ceiling
            expectation = propensity * math.exp(log / LOG_UNIT) + (1.0 - propensity) * math.exp(sign * rate * value)
            assert 1.0 - 1e-10 <= expectation <= 1.0 + 1e-12


@pytest.mark.no_cover
@pytest.mark.parametrize("late", [0, 3])
def test_over_all_paths_the_bounds_fail_as_seldom_as_promised(late: int) -> None:
    """On a stream that turns on what it sees, all 2^8 paths of the coin: either bound ever fails with chance ≤ α."""
    alpha, rounds = 0.5, 8
    failed_above = failed_below = 0.0
    for path in itertools.product((True, False), repeat=rounds):
        unseen, chance, total, above, below = UnseenSum(), 1.0, 0.0, False, False
        waiting: list[Look] = []
        for step, looked in enumerate(path):
            # Hostile: answers are long after one that was spared, and short after one that was seen.
            value = 900.0 if step == 0 or not path[step - 1] else 40.0
            propensity = 0.3 if step % 3 else 0.5
            chance *= propensity if looked else 1.0 - propensity
            unseen.flip(propensity, looks=looked)
            if looked:
                waiting.append((propensity, value))
            else:
                total += value
            while len(waiting) > late:
                unseen.see(*waiting.pop(0))
            # The upper bound is about streams without larger values.
            above = above or (unseen.ceiling >= 900.0 and total > unseen.at_most(alpha) + 1e-6)
            below = below or total < unseen.at_least(alpha) - 1e-6
        failed_above += chance * above
        failed_below += chance * below
    assert failed_above <= alpha
    assert failed_below <= alpha
    assert failed_below > 0.0, "a bound that cannot fail is not tight"


@pytest.mark.no_cover
@given(looks, st.randoms(use_true_random=False))
def test_the_order_of_values_makes_no_difference(looked: list[Look], dice: random.Random) -> None:
    """Values may come in any order, and all at the end: the state is the same to the bit, also through JSON."""
    shuffled = list(looked)
    dice.shuffle(shuffled)
    late = UnseenSum(missed=10**6)
    for propensity, _ in looked:
        late.flip(propensity, looks=True)
    for propensity, value in shuffled:
        late.see(propensity, value)
    assert late == after(looked) == UnseenSum(**json.loads(json.dumps(asdict(late))))


@given(looks, st.tuples(st.floats(0.05, 0.99), st.integers(1, 5000)))
def test_unknown_values_widen_the_bounds(looked: list[Look], unknown: Look) -> None:
    """An unknown value counts as 0 in the lower bound and as the ceiling in the upper one, until it is known."""
    waiting, known, never = after(looked), after([*looked, unknown]), after(looked)
    waiting.flip(unknown[0], looks=True)
    assert waiting.at_least(0.1) == never.at_least(0.1) <= known.at_least(0.1)
    assert waiting.at_most(0.1) >= never.at_most(0.1)
    if waiting.ceiling == known.ceiling:
        assert waiting.at_most(0.1) >= known.at_most(0.1) - 1e-6


def test_certain_rounds_leave_nothing_unseen() -> None:
    """Rounds that are certain to be seen leave nothing unseen, but show how long answers can be."""
    unseen = UnseenSum()
    for value in (10, 7000):
        unseen.flip(1.0, looks=True)
        unseen.see(1.0, value)
    assert (unseen.at_least(0.1), unseen.estimate, unseen.at_most(0.1), unseen.unknown) == (0.0, 0.0, 0.0, 0)
    assert unseen.largest == 7000


@pytest.mark.parametrize(
    "unseen",
    [
        UnseenSum(missed=5, least=0.0, largest=10),  # a coin that never says to look
        UnseenSum(missed=5, least=0.2),  # nothing seen yet
        UnseenSum(missed=5, least=0.2, largest=1e12),  # too large for every rate
    ],
)
def test_without_a_usable_rate_there_is_no_upper_bound(unseen: UnseenSum) -> None:
    """The bound and its ceiling are infinite; from below the sum is at least 0."""
    assert (unseen.at_least(0.1), unseen.at_most(0.1), unseen.ceiling) == (0.0, math.inf, math.inf)


def test_the_upper_bound_is_at_most_count_times_ceiling() -> None:
    """If no value is above the ceiling, the sum is at most their number times the ceiling."""
    unseen = after([(0.5, 100)], missed=2)
    assert unseen.at_most(0.1) == 2 * unseen.ceiling


@given(looks, st.tuples(st.floats(0.05, 0.99), st.integers(1, 5000)))
def test_a_part_of_a_value_raises_the_lower_bound_only(looked: list[Look], part: Look) -> None:
    """A value of which only a part is known stays unknown for the upper bound; a part of 0 says nothing."""
    waiting, partly, nothing = after(looked), after(looked), after(looked)
    for unseen in (waiting, partly, nothing):
        unseen.flip(part[0], looks=True)
    partly.see(*part, exact=False)
    nothing.see(part[0], 0, exact=False)
    assert partly.unknown == nothing.unknown == waiting.unknown
    assert partly.below != waiting.below
    assert partly.above == nothing.above == waiting.above
    assert nothing.below == waiting.below
