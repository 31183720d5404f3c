"""The generated part of docs/capacity.md: measured costs as a table, and what rates of requests need."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "capacity.md"
BEGIN = "<!-- measured: python -m benchmarks.capacity --write -->"
END = "<!-- end of what was measured -->"
RATES = (1_000, 100_000, 10_000_000)
# Servers are planned to be busy for this share of the time, so that queues stay short; cores of one machine; the share
# of the requests for which the expert is called.
BUSY, CORES, CALLS = 0.6, 32, 0.4
MICROSECONDS = 1e6
DAY = 86_400


def measured_table(rows: Sequence[tuple[str, float, str]]) -> str:
    """The figures, as a Markdown table."""
    lines = ["| measured | figure |", "| --- | ---: |"]
    return "\n".join([*lines, *(f"| {what} | {_number(value)} {unit} |" for what, value, unit in rows)]) + "\n"


def arithmetic(measured: Mapping[str, float]) -> str:
    """What each rate needs, computed from the figures.

    Parameters
    ----------
    measured: the figures by name.
    """
    request = (1.0 - CALLS) * measured["kept"] + CALLS * measured["called"] + measured["more"]
    per_core = BUSY * MICROSECONDS / request
    per_game = {kind: BUSY * MICROSECONDS / measured[kind] for kind in ("round", "fold", "redis")}
    lines = [
        f"With its game in Redis a request takes {1 - CALLS:g} × {_number(measured['kept'])} + {CALLS:g} × "
        f"{_number(measured['called'])} + {_number(measured['more'])} = **{_number(request)} µs** of a gateway's "
        f"processor, if the expert is called for {100 * CALLS:g}% of the requests. "
        f"A core that is {100 * BUSY:g}% busy answers {BUSY:g} × 1,000,000 / {_number(request)} = "
        f"**{_number(per_core)} requests per second**.",
        "",
        "One game can take at most, with one core that is as busy:",
        "",
        f"- with SQLite, where one process decides everything: {_number(per_game['round'])} rounds per second "
        f"({_number(measured['round'])} µs each);",
        f"- with Redis, what its one thread can take: {_number(per_game['redis'])} ({_number(measured['redis'])} µs "
        f"for each), and what the folder can fold: {_number(per_game['fold'])} ({_number(measured['fold'])} µs)."
        f" The smaller of the two is the limit of a game: **{_number(min(per_game['fold'], per_game['redis']))}**.",
        "",
        "| requests per second | gateway cores | machines with "
        f"{CORES} cores | games (segments) at least | Redis servers | journal per day |",
        "| ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    game = min(per_game["fold"], per_game["redis"])
    for rate in RATES:
        cores = math.ceil(rate / per_core)
        lines.append(
            f"| {rate:,} | {cores:,} | {math.ceil(cores / CORES):,} | {math.ceil(rate / game):,} | "
            f"{math.ceil(rate / per_game['redis']):,} | {_bytes(rate * DAY * measured['bytes'])} |"
        )
    return "\n".join(lines) + "\n"


def with_measured(page: str, text: str) -> str:
    """The page with another generated part."""
    head, begin, rest = page.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{PAGE.name} lacks its marks {BEGIN} and {END}")
    return f"{head}{BEGIN}\n\n{text}\n{END}{tail}"


def _number(value: float) -> str:
    """Three digits that count, and commas.

    >>> _number(1234.5), _number(12.345)
    ('1,230', '12.3')
    """
    digits = max(0, 2 - math.floor(math.log10(value))) if value else 0
    rounded = round(value, 2 - math.floor(math.log10(value))) if value else 0.0
    return f"{rounded:,.{digits}f}"


def _bytes(value: float) -> str:
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if value < 1000:
            return f"{_number(value)} {unit}"
        value /= 1000
    return f"{_number(value)} PB"
