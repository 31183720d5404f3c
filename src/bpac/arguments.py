"""Checks of arguments and settings, with the same error messages everywhere."""

import sys
from collections.abc import Callable, Iterable, Sequence
from numbers import Real
from typing import Any, TypeGuard

from bpac.errors import InputError, SettingsError


def fraction(value: object, name: str) -> float:
    """Return ``value`` as a float in [0, 1], or raise an error that says what to do.

    >>> fraction(1, "loss")
    1.0
    >>> fraction(float("nan"), "loss")
    Traceback (most recent call last):
    ...
    bpac.errors.InputError: loss must be a number in [0, 1], got nan; if the loss is not known, call forfeit()
    """
    if type(value) is float and 0.0 <= value <= 1.0:  # by far the most common case, checked for every query
        return value
    # Compared before it is converted: an int may be too large for a float.
    if _is_number(value) and 0 <= value <= 1:
        return float(value)
    remedy = {
        "loss": "if the loss is not known, call forfeit()",
        "uncertainty": "if there is no score, call the expert without decide()",
    }.get(name, "rescale it")
    raise InputError(f"{name} must be a number in [0, 1], got {value!r}; {remedy}")


def closed_fraction(value: object, name: str) -> float:
    """Return ``value`` as a float in [0, 1], or raise ``SettingsError``."""
    try:
        return fraction(value, name)
    except InputError as error:
        raise SettingsError(str(error)) from error


def open_fraction(value: object, name: str) -> float:
    """Return ``value`` as a float strictly between 0 and 1, or raise ``SettingsError``."""
    number = _real(value, name)
    if not 0 < number < 1:
        raise SettingsError(f"{name} must lie strictly between 0 and 1, got {value!r}")
    return float(number)


def positive(value: object, name: str) -> float:
    """Return ``value`` as a finite float above 0, or raise ``SettingsError``."""
    number = _real(value, name)
    if not 0 < number <= sys.float_info.max:
        raise SettingsError(f"{name} must be a finite number above 0, got {value!r}")
    return float(number)


def whole(value: object, name: str, least: int, most: int | None = None) -> int:
    """Return ``value`` as an int in [least, most], or raise ``SettingsError``."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise SettingsError(f"{name} must be a whole number, got {value!r}")
    if value < least or (most is not None and value > most):
        upto = "" if most is None else f" and at most {most}"
        raise SettingsError(f"{name} must be at least {least}{upto}, got {value}")
    return value


def text(value: object, name: str) -> str:
    """The value as a plain string that can be written to a journal, or ``InputError``.

    Parameters
    ----------
    value: what was passed in.
    name: its name, for the error.

    >>> text("outage", "cause")
    'outage'
    """
    if not isinstance(value, str):
        raise InputError(f"{name} must be a string, got {value!r}")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"{name} must be text that UTF-8 can encode, without lone surrogates, got {value!r}"
        ) from error
    return str(value)


def one_of(value: object, name: str, choices: tuple[str, ...]) -> None:
    """Raise ``SettingsError`` unless ``value`` is one of the words in ``choices``."""
    if value not in choices:
        raise SettingsError(f"{name} must be one of {', '.join(choices)}; got {value!r}")


def of_kind(value: object, name: str, kinds: Sequence[type]) -> None:
    """Raise ``SettingsError`` unless ``value`` is of one of these classes: no other can be written to a journal."""
    if type(value) not in kinds:
        raise SettingsError(f"{name} must be one of {', '.join(kind.__name__ for kind in kinds)}; got {value!r}")


def each(values: object, names: str, name: str, check: Callable[[object, str], float]) -> tuple[float, ...]:
    """Return the checked values as a tuple; ``SettingsError`` if this is not a list or one of them is wrong."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise SettingsError(f"{names} must be a list of numbers, got {values!r}")
    return tuple(check(value, f"each {name}") for value in values)


def some(values: object, names: str, name: str, check: Callable[[object, str], float]) -> tuple[float, ...]:
    """Like ``each``, and there must be at least one."""
    numbers = each(values, names, name, check)
    if not numbers:
        raise SettingsError(f"{names} must not be empty: give at least one {name}")
    return numbers


def keep(instance: object, **values: object) -> None:
    """Set checked values on a frozen dataclass from its ``__post_init__``.

    The values are plain floats and ints, whatever kind of number was given, because they are written to journals.
    """
    for name, value in values.items():
        object.__setattr__(instance, name, value)


def _real(value: object, name: str) -> Any:
    if not _is_number(value):
        raise SettingsError(f"{name} must be a number, got {value!r}")
    return value


def _is_number(value: Any) -> TypeGuard[Any]:
    # bool is an int in Python, but True or False instead of a number is an error.
    return isinstance(value, Real) and not isinstance(value, bool)
