"""Checks of the numbers people hand in: one wording for every layer."""

import math
from numbers import Real
from typing import SupportsFloat, cast

from bpac.errors import InputError, SettingsError


def fraction(value: object, name: str) -> float:
    """Return ``value`` as a float in [0, 1], or raise an error that says what to do.

    >>> fraction(1, "loss")
    1.0
    >>> fraction(float("nan"), "loss")
    Traceback (most recent call last):
    ...
    bpac.errors.InputError: loss must be a number in [0, 1], got nan; a loss that is not known is a forfeit
    """
    # bool is an int in Python, but a verdict in the place of a number is a mistake worth hearing about.
    if isinstance(value, Real) and not isinstance(value, bool):
        number = float(value)
        if 0.0 <= number <= 1.0:
            return number
    remedy = {
        "loss": "a loss that is not known is a forfeit",
        "uncertainty": "a draft without a score has uncertainty 1",
    }.get(name, "rescale it")
    raise InputError(f"{name} must be a number in [0, 1], got {value!r}; {remedy}")


def open_fraction(value: object, name: str) -> float:
    """Return ``value`` as a float strictly between 0 and 1, or raise ``SettingsError``."""
    number = _real(value, name)
    if not 0.0 < number < 1.0:
        raise SettingsError(f"{name} must lie strictly between 0 and 1, got {value!r}")
    return number


def positive(value: object, name: str) -> float:
    """Return ``value`` as a finite float above 0, or raise ``SettingsError``."""
    number = _real(value, name)
    if not 0.0 < number < math.inf:
        raise SettingsError(f"{name} must be a finite number above 0, got {value!r}")
    return number


def whole(value: object, name: str, least: int, most: int | None = None) -> int:
    """Return ``value`` as an int in [least, most], or raise ``SettingsError``."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise SettingsError(f"{name} must be a whole number, got {value!r}")
    if value < least or (most is not None and value > most):
        upto = "" if most is None else f" and at most {most}"
        raise SettingsError(f"{name} must be at least {least}{upto}, got {value}")
    return value


def one_of(value: object, name: str, choices: tuple[str, ...]) -> None:
    """Raise ``SettingsError`` unless ``value`` is one of the words in ``choices``."""
    if value not in choices:
        raise SettingsError(f"{name} must be one of {', '.join(choices)}; got {value!r}")


def _real(value: object, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise SettingsError(f"{name} must be a number, got {value!r}")
    return float(cast(SupportsFloat, value))
