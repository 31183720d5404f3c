"""JSON is read strictly or leniently, written for every reader, and counted before it is decoded."""

import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bpac.errors import AnswerError
from bpac.wire.json import from_json, from_strict_json, more_values_than, to_json

LEAVES = st.none() | st.booleans() | st.integers() | st.text()
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=40)


def count(value: Any) -> int:
    """The values in a JSON value, itself included."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(map(count, inner))


@settings(max_examples=300, derandomize=True, database=None, deadline=None)
@given(value=VALUES, compact=st.booleans())
def test_no_value_escapes_the_count(value: Any, compact: bool) -> None:
    """More values than allowed are noticed; half of what is allowed always passes, whatever the strings."""
    separators = (",", ":") if compact else (" , ", " : ")
    data = json.dumps(value, separators=separators, ensure_ascii=False).encode()
    found = count(value)
    assert found == 1 or more_values_than(data, found - 1)
    assert not more_values_than(data, 2 * found)


@pytest.mark.parametrize("text", ['"', "\\", '\\"', '","', "[{,", '\\\\"[', "\n,", "é,😀["])
def test_a_string_is_one_value(text: str) -> None:
    """Whatever brackets, commas and quotes are in it."""
    assert not more_values_than(json.dumps([text * 1000], ensure_ascii=False).encode(), 4)


@pytest.mark.parametrize("data", [b'"' * 10_001, b'"' + b"\\" * 10_001, b"," * 10_000, b'"a' * 10_000, b"{" * 10_000])
def test_counting_ends_on_what_is_not_json(data: bytes) -> None:
    """With any result: the decoder refuses such a text if the count does not."""
    assert more_values_than(data, 100) in (True, False)


def nested(levels: int) -> bytes:
    """Lists in lists."""
    return b"[" * levels + b"]" * levels


# What readers of JSON disagree about: a text, its value, and whether the standard allows it.
EDGES: dict[str, tuple[bytes, Any, bool]] = {
    "duplicate keys": (b'{"a": 1, "b": 0, "a": 2}', {"a": 2, "b": 0}, True),
    "beyond 64 bits": (b"[18446744073709551616, -9223372036854775809]", [2**64, -(2**63) - 1], True),
    "many digits": (b"9" * 400, int("9" * 400), True),
    "a surrogate pair": (b'"\\ud83d\\ude00"', "\U0001f600", True),
    "a lone surrogate": (b'"\\ud83d"', "\ud83d", False),
    "a lone surrogate as a key": (b'{"\\ude00": 1}', {"\ude00": 1}, False),
    "infinities": (b"[Infinity, -Infinity]", [math.inf, -math.inf], False),
    "beyond all floats": (b"1e999", math.inf, False),
    "not UTF-8": (b'"\xff"', "\ufffd", False),
    "nested": (nested(500), json.loads(nested(500)), True),
}


@pytest.mark.parametrize("name", EDGES)
def test_edges_of_json(name: str) -> None:
    """A strict reader refuses what the standard does not allow; a lenient one reads it as Python does."""
    data, value, allowed = EDGES[name]
    assert from_json(data) == value
    if allowed:
        assert from_strict_json(data) == value
    else:
        with pytest.raises(ValueError, match=r"."):
            from_strict_json(data)


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[1,]", b"01", b"'a'", b"nul", b"[1] 2", b'"\t"', b"\xef\xbb\xbf[]", b"[" * 10**5]
)
def test_what_is_not_json_is_an_error(data: bytes) -> None:
    """For both readers, and for each its own."""
    with pytest.raises(AnswerError, match="not JSON"):
        from_json(data)
    with pytest.raises(ValueError, match=r"."):
        from_strict_json(data)


def test_not_a_number_is_read_leniently_only() -> None:
    """Some servers write it."""
    assert math.isnan(from_json(b"NaN"))
    with pytest.raises(ValueError, match="malformed"):
        from_strict_json(b"NaN")


def test_what_is_written_is_read_back_the_same() -> None:
    """By every reader; what cannot be written at all is an ``AnswerError``."""
    for value in (None, "é\ud83d", {"\ude00": [2**64, -(2**99)]}, {"a": "é"}, json.loads("[" * 500 + "]" * 500)):
        assert from_json(to_json(value)) == json.loads(to_json(value)) == value
        to_json(value).decode()
    assert to_json([math.nan, "\ud83d", -math.inf]) == b'[null,"\\ud83d",null]'
    nested: list[Any] = []
    for _ in range(9999):
        nested = [nested]
    with pytest.raises(AnswerError):
        to_json(nested)
