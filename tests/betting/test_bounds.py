import itertools
import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bpac.betting.bounds.fixed_sample import (
    RISK_BOUNDS,
    betting_upper,
    binary_upper,
    binomial_cdf,
    calibrate,
    clopper_pearson_upper,
    hoeffding_bentkus_upper,
)
from bpac.errors import InputError, SettingsError


def exact_tail(successes: int, trials: int, chance: Fraction) -> Fraction:
    """P(X ≤ successes), summed in whole numbers."""
    terms = (math.comb(trials, k) * chance**k * (1 - chance) ** (trials - k) for k in range(successes + 1))
    return sum(terms, Fraction(0))


@given(trials=st.integers(1, 60), data=st.data(), chance=st.fractions(0, 1, max_denominator=50))
def test_binomial_tails_are_exact(trials: int, data: st.DataObject, chance: Fraction) -> None:
    """The tail agrees with a sum of whole numbers, at the ends too."""
    successes = data.draw(st.integers(0, trials))
    expected = float(exact_tail(successes, trials, chance))
    assert binomial_cdf(successes, trials, float(chance)) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("successes", "trials", "alpha", "bound"),
    [
        (0, 100, 0.05, 1.0 - 0.05 ** (1 / 100)),
        (9, 10, 0.05, 0.95 ** (1 / 10)),
        (10, 10, 0.05, 1.0),
        (10, 100, 0.025, 0.1762),  # the textbook's interval for 10 of 100 is (0.0490, 0.1762)
        (1, 10, 0.025, 0.4450),  # and for 1 of 10 (0.0025, 0.4450)
    ],
)
def test_clopper_pearson_has_the_known_values(successes: int, trials: int, alpha: float, bound: float) -> None:
    """Closed forms and tables are reproduced."""
    assert clopper_pearson_upper(successes, trials, alpha) == pytest.approx(bound, abs=5e-5)


@given(trials=st.integers(1, 40), data=st.data(), alpha=st.floats(0.001, 0.5))
def test_at_the_clopper_pearson_bound_the_tail_is_alpha(trials: int, data: st.DataObject, alpha: float) -> None:
    """So few successes have exactly chance α if the truth is the bound."""
    successes = data.draw(st.integers(0, trials - 1))
    bound = clopper_pearson_upper(successes, trials, alpha)
    assert float(exact_tail(successes, trials, Fraction(bound))) == pytest.approx(alpha, rel=1e-6)


@pytest.mark.no_cover
@pytest.mark.parametrize(
    ("bound", "values", "size", "alpha"),
    [
        (binary_upper, (0.0, 1.0), 8, 0.2),
        (hoeffding_bentkus_upper, (0.0, 0.5, 1.0), 5, 0.2),
        (betting_upper, (0.0, 0.5, 1.0), 5, 0.2),
        (betting_upper, (0.0, 1.0), 7, 0.3),
    ],
)
def test_bounds_hold_over_all_samples(bound: object, values: tuple[float, ...], size: int, alpha: float) -> None:
    """Over every possible sample, the chance that a bound lies below the true mean is at most α."""
    assert callable(bound)
    samples = [(sample, bound(sample, alpha)) for sample in itertools.product(values, repeat=size)]
    steps = [k / 12 for k in range(13)]
    for weights in itertools.product(steps, repeat=len(values) - 1):
        chances = dict(zip(values, (1.0 - sum(weights), *weights), strict=True))
        if chances[0.0] < -1e-12:
            continue
        mean = sum(value * chance for value, chance in chances.items())
        failed = sum(math.prod(chances[v] for v in sample) for sample, upper in samples if upper < mean - 1e-12)
        assert failed <= alpha + 1e-9


@settings(max_examples=30)
@given(
    losses=st.lists(st.sampled_from([0.0, 0.25, 1.0]), min_size=1, max_size=30),
    index=st.integers(0, 29),
    bound=st.sampled_from([hoeffding_bentkus_upper, betting_upper]),
)
def test_bounds_grow_with_the_losses(losses: list[float], index: int, bound: object) -> None:
    """Raising one loss never lowers a bound, and the bound lies between the mean and 1."""
    assert callable(bound)
    worse = list(losses)
    worse[index % len(losses)] = 1.0
    assert sum(losses) / len(losses) - 1e-9 <= bound(losses, 0.1) <= bound(worse, 0.1) + 1e-9 <= 1.0 + 1e-9


def test_a_level_no_sample_can_reach_gives_1() -> None:
    """With one row and an α that one row cannot reach, every bound is 1."""
    for bound in RISK_BOUNDS.values():
        assert bound([0.0], 1e-17) == 1.0


@pytest.mark.no_cover
@given(
    rows=st.lists(st.tuples(st.sampled_from([0.0, 0.2, 0.4, 0.8, 1.0]), st.sampled_from([0.0, 1.0])), min_size=1),
    epsilon=st.floats(0.05, 0.9),
    name=st.sampled_from(list(RISK_BOUNDS)),
)
def test_calibration_finds_the_largest_safe_threshold(
    rows: list[tuple[float, float]], epsilon: float, name: str
) -> None:
    """The threshold is the largest score (or 1) whose bound is at most ε, as trying them all finds."""
    scores, losses = zip(*rows, strict=True)
    safe = [
        threshold
        for threshold in {*scores, 1.0}
        if RISK_BOUNDS[name]([loss if score < threshold else 0.0 for score, loss in rows], 0.2) <= epsilon
    ]
    assert calibrate(scores, losses, epsilon, 0.2, name) == max(safe, default=0.0)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (([], [], 0.1, 0.1), "0 scores and 0 losses"),
        (([0.1], [0.0, 1.0], 0.1, 0.1), "1 scores and 2 losses"),
        (([1.1], [0.0], 0.1, 0.1), "uncertainty must be"),
        (([0.1], [math.nan], 0.1, 0.1), "loss must be"),
        (([0.1], [0.5], 0.1, 0.1), "needs losses that are 0 or 1: use"),
        (([0.1], [0.0], 0.0, 0.1), "epsilon"),
        (([0.1], [0.0], 0.1, 1.0), "alpha"),
        (([0.1], [0.0], 0.1, 0.1, "guess"), "bound must be one of"),
    ],
)
def test_a_bad_calibration_set_is_refused(arguments: tuple[object, ...], says: str) -> None:
    """Every row needs a score and a loss in [0, 1], and the settings must be in range."""
    with pytest.raises(InputError, match=says):
        calibrate(*arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("successes", "trials", "alpha"), [(0, 0, 0.1), (-1, 5, 0.1), (6, 5, 0.1), (1, 5, 0.0), (1, 5, 1.0), (1.0, 5, 0.1)]
)
def test_impossible_counts_are_refused(successes: int, trials: int, alpha: float) -> None:
    """There is at least one trial, and no more successes than trials."""
    with pytest.raises(SettingsError, match=r"trials|successes|alpha"):
        clopper_pearson_upper(successes, trials, alpha)


@pytest.mark.parametrize("name", list(RISK_BOUNDS))
def test_an_empty_sample_is_refused(name: str) -> None:
    """There is no bound on a mean without losses."""
    with pytest.raises(InputError):
        RISK_BOUNDS[name]([], 0.1)
