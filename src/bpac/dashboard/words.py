"""Numbers as text, for sentences."""

from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Literal


def percent(value: float) -> str:
    """A configured fraction as a percentage.

    >>> percent(0.05), percent(1 - 0.0001)
    ('5 %', '99.99 %')
    """
    return f"{100.0 * value:.6g} %"


def bound_percent(value: float, side: Literal["upper", "lower"], limit: float) -> str:
    """A bound, rounded to its safe side, with two digits or as many as distinguish it from the limit.

    >>> bound_percent(0.02011, "upper", 0.05), bound_percent(0.0512, "upper", 0.0515)
    ('2.1 %', '5.12 %')
    >>> bound_percent(0.0512, "lower", 0.05)
    '5.1 %'
    """
    rounding = ROUND_CEILING if side == "upper" else ROUND_FLOOR
    exact = Decimal(repr(value))
    for digits in range(2, 18):
        rounded = Context(prec=digits, rounding=rounding).plus(exact)
        if (float(rounded) <= limit) == (value <= limit):
            break
    return f"{(100 * rounded).normalize():f} %"


def apart(value: float, other: float) -> tuple[str, str]:
    """Two scores, with enough digits to distinguish them.

    >>> apart(0.3123456, 0.42), apart(0.41999, 0.42)
    (('0.3123', '0.42'), ('0.41999', '0.42'))
    """
    short = f"{value:.4g}", f"{other:.4g}"
    return short if short[0] != short[1] or value == other else (repr(value), repr(other))
