"""The capacity page: its generated part, and the arithmetic in it."""

import re

import pytest
from benchmarks.capacity_page import BEGIN, END, PAGE, RATES, arithmetic, with_measured

FIGURES = {"kept": 400.0, "called": 650.0, "more": 100.0, "round": 30.0, "fold": 20.0, "redis": 12.0, "bytes": 400.0}


def test_the_arithmetic_adds_up() -> None:
    """0.6 × 400 + 0.4 × 650 + 100 µs are 600 µs, so that a core that is 60% busy answers 1,000 requests per second."""
    text = arithmetic(FIGURES)
    assert "**600 µs**" in text
    assert "**1,000 requests per second**" in text
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("| 1")]
    assert rows == [
        ["1,000", "1", "1", "1", "1", "34.6 GB"],
        ["100,000", "100", "4", "4", "2", "3.46 TB"],
        ["10,000,000", "10,000", "313", "334", "200", "346 TB"],
    ]


def test_the_page_has_what_was_measured() -> None:
    """For every rate, between the two marks; the figures fit the arithmetic that is printed with them."""
    page = PAGE.read_text(encoding="utf-8")
    measured = page.partition(BEGIN)[2].partition(END)[0]
    assert [rate for rate in RATES if f"| {rate:,} |" not in measured] == []
    sums = re.findall(r"0\.6 × ([\d.,]+) \+ 0\.4 × ([\d.,]+) \+ ([\d.,]+) = \*\*([\d.,]+) µs", measured)
    kept, called, more, per_request = (float(found.replace(",", "")) for found in sums[0])
    assert per_request == pytest.approx(0.6 * kept + 0.4 * called + more, rel=0.01)


def test_only_the_generated_part_is_replaced() -> None:
    """A page without the marks is refused."""
    assert with_measured(f"a\n{BEGIN}\nold\n{END}\nb", "new\n") == f"a\n{BEGIN}\n\nnew\n\n{END}\nb"
    with pytest.raises(SystemExit, match="lacks its marks"):
        with_measured("a page", "new")
