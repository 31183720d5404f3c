import math

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bpac.betting.ledgers.levels import EvenLevels, Levels, ListedLevels, RelativeLevels
from bpac.errors import SettingsError
from tests.transcriptions import rounded_down

KINDS: list[Levels] = [
    RelativeLevels(),
    RelativeLevels(4, 20),
    RelativeLevels(1, 1000),
    RelativeLevels(16, 1),
    EvenLevels(),
    EvenLevels(2),
    EvenLevels(65_535),
    ListedLevels((0.3, 0.1, 0.30000000000000004)),
    ListedLevels((0.0, 1.0)),
]
TOO_MANY = tuple(k / 70_000 for k in range(70_000))
scores = st.one_of(
    st.floats(0, 1),
    st.integers(0, 1000).map(lambda k: k / 1000),
    st.builds(math.ldexp, st.floats(0.5, 1.0), st.integers(-1070, 0)),
    st.sampled_from([0.0, 1.0, 5e-324, 2.0**-40, math.nextafter(2.0**-40, 0), math.nextafter(1.0, 0.0)]),
)


@pytest.mark.parametrize("levels", KINDS, ids=repr)
@settings(max_examples=50)
@given(score=scores)
def test_a_score_is_booked_at_the_largest_level_not_above_it(levels: Levels, score: float) -> None:
    """``value(code(x)) ≤ x < value(code(x) + 1)``: a loss counts for every threshold it should count for."""
    code = levels.code(score)
    assert 0 <= code <= levels.top
    assert levels.value(code) <= score
    assert code == levels.top or score < levels.value(code + 1)


@pytest.mark.parametrize("levels", KINDS, ids=repr)
@settings(max_examples=50)
@given(data=st.data())
def test_codes_are_monotone_and_values_are_their_inverse(levels: Levels, data: st.DataObject) -> None:
    """Codes never fall with the score, values rise with the code, and each level has its own code."""
    low, high = sorted(data.draw(st.tuples(scores, scores)))
    assert levels.code(low) <= levels.code(high)
    code = data.draw(st.integers(0, levels.top))
    assert levels.code(levels.value(code)) == code
    assert code == 0 or levels.value(code - 1) < levels.value(code)


@pytest.mark.parametrize("levels", KINDS, ids=repr)
def test_levels_run_from_0_to_1(levels: Levels) -> None:
    """The lowest level is 0 and the top one is 1."""
    assert (levels.value(0), levels.value(levels.top)) == (0.0, 1.0)


@given(score=scores, bits=st.integers(1, 12), octaves=st.integers(1, 12))
@example(score=math.nextafter(0.5, 0.0), bits=11, octaves=40)
def test_relative_levels_keep_the_leading_bits(score: float, bits: int, octaves: int) -> None:
    """A score keeps its leading mantissa bits, and becomes 0 below ``2**-octaves`` (MATH 3)."""
    levels = RelativeLevels(bits, octaves)
    assert levels.value(levels.code(score)) == rounded_down(score, bits, octaves)


@given(scores=st.lists(st.floats(0.0, 1.0)), bits=st.integers(1, 10))
def test_many_scores_have_the_codes_they_have_alone(scores: list[float], bits: int) -> None:
    """``codes`` is ``code`` of each."""
    levels = RelativeLevels(bits)
    assert levels.codes(scores).tolist() == [levels.code(score) for score in scores]


@given(score=st.floats(2.0**-40, 1))
def test_eleven_bits_are_at_most_a_thousandth_below(score: float) -> None:
    """The default rounding never takes more than 0.1 % of a score."""
    levels = RelativeLevels()
    assert levels.value(levels.code(score)) >= score * (1.0 - 0.001)


@given(count=st.integers(2, 2000), data=st.data())
def test_even_levels_agree_with_plain_comparisons(count: int, data: st.DataObject) -> None:
    """The code is the last grid point with ``i / (N − 1) ≤ x``, exactly, on and beside every grid point."""
    index = data.draw(st.integers(0, count - 1))
    point = index / (count - 1)
    near = [point, math.nextafter(point, 2.0), math.nextafter(point, -1.0), data.draw(scores)]
    for score in near:
        if 0.0 <= score <= 1.0:
            expected = sum(i / (count - 1) <= score for i in range(count)) - 1
            assert EvenLevels(count).code(score) == expected


@pytest.mark.parametrize("count", [23, 24, 27, 40, 45, 1001])
def test_every_grid_point_is_its_own_level(count: int) -> None:
    """Rounding of a product, up or down, never moves a score on a grid point to its neighbour."""
    levels = EvenLevels(count)
    assert [levels.code(index / (count - 1)) for index in range(count)] == list(range(count))


@pytest.mark.parametrize(("bits", "octaves"), [(0, 40), (17, 4), (11, 0), (16, 2), (11, 64), (11.0, 40), (True, 40)])
def test_relative_levels_must_fit_two_bytes(bits: int, octaves: int) -> None:
    """Too many levels, and numbers that are not counts, are refused."""
    with pytest.raises(SettingsError, match=r"bits|octaves|levels are too many"):
        RelativeLevels(bits, octaves)


@pytest.mark.parametrize("count", [1, 0, -3, 65_536, 10.0, "11"])
def test_even_levels_refuse_a_count_out_of_range(count: int) -> None:
    """A grid has at least two points and at most as many as fit two bytes."""
    with pytest.raises(SettingsError, match=r"^count must be"):
        EvenLevels(count)


@pytest.mark.parametrize("thresholds", [(), (0.5, 1.5), (math.nan,), ("0.5",), TOO_MANY])
def test_listed_levels_need_thresholds_between_0_and_1(thresholds: tuple[float, ...]) -> None:
    """An empty list, a threshold outside [0, 1] and a list too long are bad settings."""
    with pytest.raises(SettingsError, match="threshold"):
        ListedLevels(thresholds)
