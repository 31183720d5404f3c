"""What is written with orjson and without."""

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
def test_both_encoders_say_the_same(value: Any) -> None:
    """Every JSON value is read back as it was, whichever of them wrote it."""
    with pytest.MonkeyPatch.context() as patched:
        fast = encode(value)
        patched.setattr(encoding, "orjson", None)
        standard = encode(value)
    assert json.loads(fast) == json.loads(standard) == value


def test_a_store_without_orjson(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A journal that was written without orjson is read, and continued, with it."""
    path = str(tmp_path / "bpac.db")
    with monkeypatch.context() as without:
        without.setattr(encoding, "orjson", None)
        store = SqliteStore(path)
        game, written, _ = play(store, 20)
        store.close()
    store = SqliteStore(path)
    assert [kept.entry for kept in store.entries(game)] == written
    store.append(game, written[-1], {"again": True})
    asyncio.run(store.durable())
    assert [kept.entry for kept in store.entries(game)] == [*written, written[-1]]
    store.close()
