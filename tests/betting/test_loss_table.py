from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpac.betting.ledgers.levels import MOST_LEVELS
from bpac.betting.ledgers.loss_table import DEAD, LossTable

TOP = 20
Operation = tuple[str, int, int, int]
operations = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(0, TOP), st.integers(1, 5), st.integers(0, 3)),
        st.tuples(st.just("take out"), st.integers(0, 50), st.just(0), st.just(0)),
        st.tuples(st.sampled_from(["climb", "fall", "find"]), st.integers(-1, 40), st.just(0), st.just(0)),
    ),
    max_size=60,
)


class Model:
    """The same table as a dict, summed anew for every result."""

    def __init__(self) -> None:
        self.booked: dict[int, list[int]] = defaultdict(lambda: [0, 0])

    def add(self, code: int, amounts: tuple[int, int]) -> None:
        """Book amounts at a level."""
        self.booked[code] = [was + amount for was, amount in zip(self.booked[code], amounts, strict=True)]

    def below(self, limit: int) -> list[int]:
        """The sums over all levels under a limit."""
        return [sum(sums[k] for code, sums in self.booked.items() if code < limit) for k in range(2)]

    def largest(self, most: int) -> int:
        """The largest limit whose first sum is at most ``most``; 0 if there is none."""
        return max((limit for limit in range(TOP + 1) if self.below(limit)[0] <= most), default=0)


@given(operations=operations)
def test_the_table_agrees_with_a_dict(operations: list[Operation]) -> None:
    """After any bookings and moves the limit and its sums are those of a plain sum over a dict."""
    table, model = LossTable(2, TOP), Model()
    bookings: list[tuple[int, tuple[int, int]]] = []
    for name, number, first, second in operations:
        before = table.limit
        if name == "add":
            bookings.append((number, (first, second)))
            table.add(number, (first, second))
            model.add(number, (first, second))
        elif name == "take out" and bookings:
            code, amounts = bookings.pop(number % len(bookings))
            table.add(code, [-amount for amount in amounts])
            model.add(code, (-amounts[0], -amounts[1]))
        elif name in ("fall", "find"):
            table.fall(lambda sums, most=number: sums[0] <= most)  # type: ignore[misc]
            assert table.limit <= before
            assert table.limit == 0 or table.below[0] <= number
            assert table.limit == before or table.limit <= model.largest(number)
        if name in ("climb", "find"):
            fits = model.below(table.limit)[0] <= number
            start = table.limit
            table.climb(lambda sums, most=number: sums[0] <= most)  # type: ignore[misc]
            assert table.limit == (model.largest(number) if fits else start)
        assert table.below == model.below(table.limit)
        assert [table.sums_below(code) for code in range(TOP + 1)] == [model.below(code) for code in range(TOP + 1)]
        assert table.limit in {0, TOP} | set(model.booked)


@given(operations=operations)
def test_a_table_is_rebuilt_from_its_rows(operations: list[Operation]) -> None:
    """Rows and limit make the same table again, without the levels at which nothing is left."""
    table = LossTable(2, TOP)
    for name, number, first, second in operations:
        if name == "add":
            table.add(number, (first, second))
        elif name == "take out":
            for code, *sums in table.rows()[:1]:
                table.add(code, [-amount for amount in sums])
        else:
            table.fall(lambda sums, most=number: sums[0] <= most)  # type: ignore[misc]
            table.climb(lambda sums, most=number: sums[0] <= most)  # type: ignore[misc]
    copy = LossTable(2, TOP)
    copy.load(table.rows(), table.limit)
    assert (copy.rows(), copy.limit, copy.below) == (table.rows(), table.limit, table.below)
    assert all(any(sums) for _, *sums in table.rows())


def test_a_limit_may_fall_to_a_level_without_a_booking() -> None:
    """If no stretch passes the test, the limit is 0, whether or not anything is booked there."""
    table = LossTable(1, TOP)
    table.add(2, [7])
    table.climb(lambda sums: True)
    assert (table.limit, table.below) == (TOP, [7])
    table.fall(lambda sums: False)
    assert (table.limit, table.below) == (0, [0])


@pytest.mark.parametrize("counted", [False, True], ids=["above the limit", "below the limit"])
def test_a_dead_level_stays_dead(counted: bool) -> None:
    """A level that lost too much for 64 bits stays dead in all its sums, and the sums below it stay consistent."""
    table = LossTable(2, TOP)
    table.add(1, [-3, -5])
    if counted:
        table.climb(lambda sums: True)
    for _ in range(9):
        table.add(3, [DEAD // 4, DEAD // 2])
    for _ in range(9):
        table.add(3, [-(DEAD // 4), -(DEAD // 2)])
    assert table.rows() == [[1, -3, -5], [3, DEAD, DEAD]]
    assert table.below == ([DEAD - 3, DEAD - 5] if counted else [0, 0])
    assert table.sums_below(4) == [DEAD - 3, DEAD - 5]


def test_every_level_may_be_booked() -> None:
    """The largest table there is has room for a booking at each of its levels."""
    table = LossTable(1, MOST_LEVELS - 1)
    for code in range(MOST_LEVELS):
        table.add(code, [code])
    assert table.sums_below(MOST_LEVELS - 1) == [sum(range(MOST_LEVELS - 1))]
    assert table.rows()[-1] == [MOST_LEVELS - 1, MOST_LEVELS - 1]
