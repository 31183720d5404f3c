"""Journal entries as JSON text."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpac.stores import SqliteStore, encoding
from bpac.stores.encoding import encode
from tests.stores.journals import play

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 63), (1 << 63) - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4).filter(str.isascii), inner),
    max_leaves=8,
)


@given(VALUES)
def test_every_json_value_is_read_back_as_it_was(value: Any) -> None:
    """Whatever a note or an entry holds survives being written."""
    assert json.loads(encode(value)) == value


# To the byte: the hash chain of a journal is over this text, and other programs may check it.
TEXTS = {
    '{"entry":"decided","step":3,"uncertainty":0.1,"call_expert":true}': {
        "entry": "decided", "step": 3, "uncertainty": 0.1, "call_expert": True,
    },
    "[1e-7,0.000015,0.1,1.0,0.30000000000000004,5e-324,-0.0,123456789.25]": [
        1e-7, 1.5e-5, 0.1, 1.0, 0.1 + 0.2, 5e-324, -0.0, 123456789.25,
    ],
    "[18446744073709551615,-9223372036854775808,null,false]": [2**64 - 1, -(2**63), None, False],
    '["é😀","\\u0000\\u001f\\b\\f\\n\\r\\t\\"\\\\/\x7f\u2028"]': ["é😀", "\0\x1f\b\f\n\r\t\"\\/\x7f\u2028"],
}  # fmt: skip


@pytest.mark.parametrize("text", TEXTS)
def test_the_text_of_a_journal_does_not_change(text: str) -> None:
    """Numbers, escapes and separators are those of every journal that was written so far."""
    assert encode(TEXTS[text]) == text


def test_a_journal_of_another_encoder_is_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A journal that the standard library's encoder wrote, as earlier versions could, is read and continued."""
    path = str(tmp_path / "bpac.db")
    standard = json.JSONEncoder(separators=(",", ":"), allow_nan=False)
    with monkeypatch.context() as earlier:
        earlier.setattr(encoding, "_encode", lambda value: standard.encode(value).encode())
        store = SqliteStore(path)
        game, written, _ = play(store, 20)
        store.close()
    store = SqliteStore(path)
    assert [kept.entry for kept in store.entries(game)] == written
    store.append(game, written[-1], {"again": True})
    asyncio.run(store.durable())
    assert [kept.entry for kept in store.entries(game)] == [*written, written[-1]]
    store.close()
