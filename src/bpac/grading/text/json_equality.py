"""JSON as values that can be compared: equal if and only if the JSON is equal, with numbers compared exactly."""

import json
from collections.abc import Hashable, Mapping, Sequence
from decimal import Decimal
from typing import Any, NoReturn


def parse_comparable(text: str) -> Hashable:
    """Parse a JSON text into a value that can be compared; ``ValueError`` if the text is not JSON or is ambiguous.

    The order of keys does not matter, and 1 equals 1.0 but neither ``true`` nor ``"1"``. An object with a duplicate key
    is ambiguous, because parsers disagree about its meaning.

    >>> parse_comparable('{"a": 1, "b": [true]}') == parse_comparable('{"b":[true],"a":1.0}')
    True
    >>> parse_comparable('{"a": 1, "a": 2}')
    Traceback (most recent call last):
    ...
    ValueError: the key 'a' occurs twice in one object
    """
    try:
        parsed = json.loads(text, parse_float=Decimal, parse_constant=_no_constant, object_pairs_hook=_object)
        return comparable(parsed)
    except ArithmeticError:
        raise ValueError("the JSON contains a number that is too large") from None
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None


def comparable(value: Any) -> Hashable:
    """The same for a value that was already parsed.

    >>> comparable(1) == comparable(1.0), comparable(1) == comparable(True)
    (True, False)
    """
    if isinstance(value, Mapping):
        return "object", frozenset((key, comparable(part)) for key, part in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "array", tuple(comparable(part) for part in value)
    # In Python True == 1.
    if isinstance(value, bool):
        return "truth", value
    # A float that was parsed elsewhere stands for the decimal number that was written.
    return "scalar", Decimal(repr(value)) if isinstance(value, float) else value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {key!r} occurs twice in one object")
        found[key] = value
    return found


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
