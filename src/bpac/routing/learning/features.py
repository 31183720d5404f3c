"""Features of a draft: numbers and words that are known before its query is decided."""

from collections.abc import Mapping, Sequence
from typing import Any

from bpac.arguments import text
from bpac.errors import InputError

# A number, a word such as the name of a task, or none where it is not known.
Feature = float | str | None
Features = Mapping[str, Feature] | Sequence[Feature]

LONGEST_WORD = 64
# Beyond this, differences of two numbers could overflow; no feature of a draft is as large.
LARGEST = 1e300
LEAST = -LARGEST


def checked_features(values: Any, names: tuple[str, ...]) -> tuple[Feature, ...]:
    """The features of a draft in the order of their names, or ``InputError``.

    Parameters
    ----------
    values: features by name, where those that are missing are not known; or one for each name.
    names: the names that the router was given.

    >>> checked_features({"draft_tokens": 120, "task": "law"}, ("draft_tokens", "confidence", "task"))
    (120.0, None, 'law')
    """
    if not names:
        raise InputError("this router learns no score, so it takes no features: give its policy learn=LearnedScore(…)")
    if type(values) is tuple and len(values) == len(names):  # the shortest way: this is done for every query
        for value in values:
            if value.__class__ is float:
                if LEAST <= value <= LARGEST:
                    continue
                break
            if value is not None and (value.__class__ is not str or len(value) > LONGEST_WORD or not value.isascii()):
                break
        else:
            return values
    if values is None:
        return (None,) * len(names)
    if isinstance(values, Mapping):
        unknown = [name for name in values if name not in names]
        if unknown:
            raise InputError(f"this router does not know the feature {unknown[0]!r}; it knows {', '.join(names)}")
        return tuple(_checked(values.get(name), name) for name in names)
    if isinstance(values, str) or not isinstance(values, Sequence) or len(values) != len(names):
        raise InputError(f"features must be given by name, or one for each of {', '.join(names)}; got {values!r}")
    return tuple(map(_checked, values, names))


def _checked(value: Any, name: str) -> Feature:
    if value is None or (type(value) is float and -LARGEST <= value <= LARGEST):
        return value
    if isinstance(value, str):
        word = text(value, f"feature {name}")
        if len(word) > LONGEST_WORD:
            raise InputError(
                f"feature {name} must be at most {LONGEST_WORD} characters long, got {len(word)}: "
                "it names a kind of query and is no text"
            )
        return word
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = float("nan")
    if not -LARGEST <= number <= LARGEST:
        raise InputError(f"feature {name} must be a finite number, a word or None if it is not known; got {value!r}")
    return number
