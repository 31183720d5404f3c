"""JSON as values: two are equal when and only when they are equal as JSON, numbers to the last digit."""

import json
from collections.abc import Hashable, Mapping, Sequence
from decimal import Decimal
from typing import Any, NoReturn


def json_value(text: str) -> Hashable:
    """The value that a JSON text stands for; ``ValueError`` if it is no JSON or can be read in two ways.

    The order of keys does not count, and 1 is 1.0 but neither ``true`` nor ``"1"``. An object that has one key twice
    means different things to different parsers, so it is refused.

    >>> json_value('{"a": 1, "b": [true]}') == json_value('{"b":[true],"a":1.0}')
    True
    >>> json_value('{"a": 1, "a": 2}')
    Traceback (most recent call last):
    ...
    ValueError: the key 'a' stands twice in one object
    """
    try:
        parsed = json.loads(text, parse_float=Decimal, parse_constant=_no_constant, object_pairs_hook=_object)
        return value_of(parsed)
    except ArithmeticError:
        raise ValueError("JSON with a number beyond all bounds") from None
    except RecursionError:
        raise ValueError("JSON that is nested too deeply") from None


def value_of(value: Any) -> Hashable:
    """The same of values that were parsed already.

    >>> value_of(1) == value_of(1.0), value_of(1) == value_of(True)
    (True, False)
    """
    if isinstance(value, Mapping):
        return "object", frozenset((key, value_of(part)) for key, part in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "array", tuple(value_of(part) for part in value)
    # In Python True == 1.
    if isinstance(value, bool):
        return "truth", value
    # A float that was parsed elsewhere means the number it was written as.
    return "scalar", Decimal(repr(value)) if isinstance(value, float) else value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {key!r} stands twice in one object")
        found[key] = value
    return found


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
