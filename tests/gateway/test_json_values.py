"""Values are counted without being made, and not miscounted by what stands in texts."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bpac.wire.json_values import more_values_than

LEAVES = st.none() | st.booleans() | st.integers() | st.text()
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=40)


def count(value: Any) -> int:
    """The values in a JSON value, itself included."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(map(count, inner))


@settings(max_examples=300, derandomize=True, database=None, deadline=None)
@given(value=VALUES, compact=st.booleans())
def test_no_value_escapes(value: Any, compact: bool) -> None:
    """More values than allowed are noticed; half of what is allowed always passes, whatever the texts."""
    separators = (",", ":") if compact else (" , ", " : ")
    data = json.dumps(value, separators=separators, ensure_ascii=False).encode()
    found = count(value)
    assert found == 1 or more_values_than(data, found - 1)
    assert not more_values_than(data, 2 * found)


@pytest.mark.parametrize("text", ['"', "\\", '\\"', '","', "[{,", '\\\\"[', "\n,", "é,😀["])
def test_texts_do_not_count(text: str) -> None:
    """A text is one value, however much it looks like many."""
    assert not more_values_than(json.dumps([text * 1000], ensure_ascii=False).encode(), 4)


@pytest.mark.parametrize("data", [b'"' * 10_001, b'"' + b"\\" * 10_001, b"," * 10_000, b'"a' * 10_000, b"{" * 10_000])
def test_what_is_no_json_ends(data: bytes) -> None:
    """It gets an answer, and the reader of JSON after it refuses it if this one does not."""
    assert more_values_than(data, 100) in (True, False)
