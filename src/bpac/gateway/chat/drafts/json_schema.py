"""Whether a JSON value can fit a JSON schema, decided in a bounded number of steps.

Schemas come from callers, and the check runs while other callers wait. A few lines of schema can take a validator of
the whole standard years (references that double at each level, regular expressions that backtrack), or make it fetch
addresses. Therefore:

1. Only conditions that a value must meet are checked, each in time that is counted. ``pattern``, ``patternProperties``,
   ``format``, ``not``, ``if`` and references to other documents are not; ``oneOf`` is checked like ``anyOf``.
2. What is not checked, is malformed, or takes too many steps counts as fitting. "No" is therefore certain.
"""

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import unquote

from bpac.grading.text.json_equality import comparable
from bpac.wire.json import to_json

MOST_STEPS = 20_000
# Bytes of a value that are compared in about the time of one step.
_BYTES_PER_STEP = 16


class _TooManySteps(Exception):
    pass


def can_fit(value: Any, schema: Any, most_steps: int = MOST_STEPS) -> bool:
    """False if a value certainly does not fit a schema.

    Parameters
    ----------
    value: the value, decoded.
    schema: the schema, decoded.
    most_steps: after so many steps it counts as fitting (default: 20,000, about 20 milliseconds).

    >>> schema = {"type": "object", "properties": {"answer": {"type": "integer"}}, "required": ["answer"]}
    >>> can_fit({"answer": 42}, schema), can_fit({"answer": "42"}, schema), can_fit({}, schema)
    (True, False, False)
    """
    try:
        return _Check(schema, most_steps).fits(value, schema)
    except (_TooManySteps, RecursionError, TypeError, ValueError, LookupError, AttributeError, ArithmeticError):
        return True


class _Check:
    """One check: the schema that references point into, and the steps that are left."""

    def __init__(self, root: Any, steps: int) -> None:
        self.root = root
        self._left = steps

    def spend(self, steps: int) -> None:
        self._left -= steps
        if self._left < 0:
            raise _TooManySteps

    def fits(self, value: Any, schema: Any) -> bool:
        if schema is False:
            return False
        if not isinstance(schema, Mapping):
            return True
        self.spend(1 + len(schema))
        return all(rule(self, value, schema[keyword], schema) for keyword, rule in _RULES.items() if keyword in schema)


Rule = Callable[[_Check, Any, Any, Mapping[str, Any]], bool]


def _reference(check: _Check, value: Any, pointer: Any, _: Mapping[str, Any]) -> bool:
    if not isinstance(pointer, str) or not (pointer == "#" or pointer.startswith("#/")):
        return True
    check.spend(len(pointer) // _BYTES_PER_STEP)
    found = check.root
    for part in pointer.split("/")[1:]:
        check.spend(1)
        name = unquote(part).replace("~1", "/").replace("~0", "~")
        found = found[int(name)] if isinstance(found, list) else found[name]
    return check.fits(value, found)


def _all_of(check: _Check, value: Any, schemas: Any, _: Mapping[str, Any]) -> bool:
    return all(check.fits(value, schema) for schema in schemas)


def _any_of(check: _Check, value: Any, schemas: Any, _: Mapping[str, Any]) -> bool:
    return any(check.fits(value, schema) for schema in schemas)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_TYPES: Mapping[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "number": _is_number,
    "integer": lambda value: _is_number(value) and value % 1 == 0,
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
}


def _type(check: _Check, value: Any, types: Any, _: Mapping[str, Any]) -> bool:
    names = types if isinstance(types, list) else [types]
    check.spend(len(names))
    return any(_TYPES[name](value) for name in names)


def _enum(check: _Check, value: Any, choices: Any, _: Mapping[str, Any]) -> bool:
    check.spend(len(to_json([value, choices])) // _BYTES_PER_STEP)
    return comparable(value) in [comparable(choice) for choice in choices]


def _const(check: _Check, value: Any, constant: Any, schema: Mapping[str, Any]) -> bool:
    return _enum(check, value, [constant], schema)


def _properties(check: _Check, value: Any, schemas: Any, _: Mapping[str, Any]) -> bool:
    if not isinstance(value, dict):
        return True
    check.spend(len(value))
    return all(check.fits(part, schemas[name]) for name, part in value.items() if name in schemas)


def _required(check: _Check, value: Any, names: Any, _: Mapping[str, Any]) -> bool:
    check.spend(len(names))
    return not isinstance(value, dict) or all(name in value for name in names)


def _additional(check: _Check, value: Any, schema: Any, around: Mapping[str, Any]) -> bool:
    if not isinstance(value, dict) or "patternProperties" in around:
        return True
    check.spend(len(value))
    known = around.get("properties", {})
    return all(check.fits(part, schema) for name, part in value.items() if name not in known)


def _items(check: _Check, value: Any, schema: Any, around: Mapping[str, Any]) -> bool:
    if not isinstance(value, list):
        return True
    check.spend(len(value))
    return all(check.fits(part, schema) for part in value[len(around.get("prefixItems", ())) :])


def _prefix(check: _Check, value: Any, schemas: Any, _: Mapping[str, Any]) -> bool:
    return not isinstance(value, list) or all(check.fits(*pair) for pair in zip(value, schemas, strict=False))


def _bound(applies: Callable[[Any], bool], holds: Callable[[Any, Any], bool]) -> Rule:
    return lambda check, value, bound, _: not (applies(value) and _is_number(bound)) or holds(value, bound)


_RULES: Mapping[str, Rule] = {
    "type": _type,
    "required": _required,
    "minimum": _bound(_is_number, lambda value, bound: value >= bound),
    "maximum": _bound(_is_number, lambda value, bound: value <= bound),
    "exclusiveMinimum": _bound(_is_number, lambda value, bound: value > bound),
    "exclusiveMaximum": _bound(_is_number, lambda value, bound: value < bound),
    "minLength": _bound(_TYPES["string"], lambda value, bound: len(value) >= bound),
    "maxLength": _bound(_TYPES["string"], lambda value, bound: len(value) <= bound),
    "minItems": _bound(_TYPES["array"], lambda value, bound: len(value) >= bound),
    "maxItems": _bound(_TYPES["array"], lambda value, bound: len(value) <= bound),
    "minProperties": _bound(_TYPES["object"], lambda value, bound: len(value) >= bound),
    "maxProperties": _bound(_TYPES["object"], lambda value, bound: len(value) <= bound),
    "enum": _enum,
    "const": _const,
    "properties": _properties,
    "additionalProperties": _additional,
    "prefixItems": _prefix,
    "items": _items,
    "allOf": _all_of,
    "anyOf": _any_of,
    "oneOf": _any_of,
    "$ref": _reference,
}
