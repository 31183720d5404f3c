"""A JSON schema is checked in a bounded number of steps, and "does not fit" is certain."""

from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bpac.gateway.chat.drafts.json_schema import can_fit

TREE = {
    "$defs": {
        "node": {
            "type": "object",
            "properties": {
                "value": {"type": "integer"},
                "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]},
            },
            "required": ["value", "next"],
            "additionalProperties": False,
        }
    },
    "$ref": "#/$defs/node",
}


@pytest.mark.parametrize(
    ("value", "schema", "fits"),
    [
        (1, {"type": "integer"}, True),
        (1.0, {"type": "integer"}, True),
        (1.5, {"type": "integer"}, False),
        (True, {"type": "integer"}, False),
        (None, {"type": ["string", "null"]}, True),
        ("a", {"enum": ["a", "b"]}, True),
        ("c", {"enum": ["a", "b"]}, False),
        (True, {"enum": [1]}, False),
        (1, {"const": 1.0}, True),
        ({"a": 1}, {"const": {"a": 2}}, False),
        ({"a": 1}, {"properties": {"a": {"type": "string"}}}, False),
        ({"b": 1}, {"properties": {"a": True}, "additionalProperties": False}, False),
        ({"b": 1}, {"properties": {"a": True}, "additionalProperties": {"type": "integer"}}, True),
        ({"b": 1}, {"patternProperties": {"b": True}, "additionalProperties": False}, True),
        ([1, "a"], {"items": {"type": "integer"}}, False),
        (["a", 1, 2], {"prefixItems": [{"type": "string"}], "items": {"type": "integer"}}, True),
        ([1], {"prefixItems": [{"type": "string"}]}, False),
        ([], {"minItems": 1}, False),
        ([1, 2], {"maxItems": 1}, False),
        (5, {"minimum": 5, "exclusiveMaximum": 5}, False),
        ("abc", {"maxLength": 2}, False),
        ({}, {"minProperties": 1}, False),
        (1, {"allOf": [{"type": "integer"}, {"minimum": 2}]}, False),
        (1, {"oneOf": [{"type": "string"}, {"type": "null"}]}, False),
        ({"value": 1, "next": {"value": 2, "next": None}}, TREE, True),
        ({"value": 1, "next": {"value": 2}}, TREE, False),
        (1, False, False),
        (1, True, True),
    ],
)
def test_values_are_checked(value: Any, schema: Any, fits: bool) -> None:
    """The conditions that structured outputs use."""
    assert can_fit(value, schema) is fits


SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.5, "", "a", "ab"])
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner)
)
TYPES = st.sampled_from(["object", "array", "string", "number", "integer", "boolean", "null"])
SCHEMAS = st.recursive(
    st.booleans() | st.builds(lambda kind: {"type": kind}, TYPES) | st.builds(lambda value: {"const": value}, SCALARS),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "type": TYPES,
            "enum": st.lists(VALUES, min_size=1, max_size=3),
            "properties": st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
            "required": st.lists(st.sampled_from("ab"), unique=True),
            "additionalProperties": inner,
            "items": inner,
            "prefixItems": st.lists(inner, min_size=1, max_size=2),
            "minItems": st.integers(0, 2),
            "maxLength": st.integers(0, 2),
            "minimum": st.integers(-2, 2),
            "not": inner,
            "anyOf": st.lists(inner, min_size=1, max_size=2),
            "oneOf": st.lists(inner, min_size=1, max_size=2),
            "allOf": st.lists(inner, min_size=1, max_size=2),
        },
    ),
    max_leaves=8,
)


@settings(max_examples=200, deadline=None)
@given(VALUES, SCHEMAS)
def test_what_does_not_fit_fits_no_other_validator(value: Any, schema: Any) -> None:
    """A value that a complete validator accepts is never called wrong."""
    if jsonschema_rs.is_valid(schema, value):
        assert can_fit(value, schema)


def doubling(levels: int) -> dict[str, Any]:
    """A schema of a few lines that takes a validator 2 ** levels steps."""
    names = {f"a{level}": {"anyOf": [{"$ref": f"#/$defs/a{level + 1}"}] * 2} for level in range(levels)}
    return {"$ref": "#/$defs/a0", "$defs": {**names, f"a{levels}": {"type": "string"}}}


@pytest.mark.parametrize(
    ("value", "schema"),
    [
        (1, doubling(200)),
        (1, {"$ref": "#"}),
        (1, {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}),
        ("a" * 50 + "b", {"pattern": "^(a+)+$"}),
        (1, {"$ref": "http://127.0.0.1:9/schema"}),
        (1, {"$ref": "#/no/such/place"}),
        (1, {"$ref": "#/" + "/" * 10**6}),
        ([0] * 10**6, {"anyOf": [{"items": {"type": "string"}}] * 10_000}),
        ("x", {"enum": [["y" * 10**6]] * 10}),
        ([*[999] * 1000, -1], {"items": {"anyOf": [{"const": number} for number in range(1000)]}}),
        (1, {"type": "no such type"}),
        ({"a": 1}, {"required": 5, "properties": 5, "additionalProperties": 5}),
        (1, {"allOf": 5}),
        (1, {"minimum": "5"}),
        (1, "not a schema"),
    ],
)
def test_a_hostile_schema_ends_and_says_nothing(value: Any, schema: Any) -> None:
    """It takes few steps and fetches nothing; what was not checked counts as fitting."""
    assert can_fit(value, schema)
