from hypothesis import given
from hypothesis import strategies as st

from bpac.betting.ledgers.lanes import BITS, Lanes

MOST = (1 << (BITS - 1)) - 1
numbers = st.integers(-MOST // 4, MOST // 4)


@given(pairs=st.lists(st.tuples(numbers, numbers), min_size=1, max_size=9), times=st.integers(-2, 2))
def test_lanes_do_not_touch(pairs: list[tuple[int, int]], times: int) -> None:
    """Sums, differences and multiples of all numbers at once are those of each number alone."""
    lanes = Lanes(len(pairs))
    first, second = (lanes.together(part) for part in zip(*pairs, strict=True))
    assert lanes.apart(first + second) == [a + b for a, b in pairs]
    assert lanes.apart(first - second) == [a - b for a, b in pairs]
    assert lanes.apart(times * first) == [times * a for a, _ in pairs]


@given(parts=st.lists(st.integers(-MOST, MOST), min_size=1, max_size=4), most=numbers, by=st.integers(-1, 1))
def test_a_bound_looks_at_the_last_number_only(parts: list[int], most: int, by: int) -> None:
    """Whether the last number is at most a bound is one comparison, whatever the others are."""
    lanes, last = Lanes(len(parts)), most + by
    assert (lanes.together([*parts[:-1], last]) < lanes.last_at_most(most)) == (last <= most)
