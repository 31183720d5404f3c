"""Every kind of store, for tests of what all of them must do."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from bpac.stores import MemoryStore, SqliteStore, Store


@pytest.fixture(autouse=True)
def _private() -> Iterator[None]:
    """Make files that a test writes private, so that opening them logs nothing."""
    before = os.umask(0o077)
    yield
    os.umask(before)


@pytest.fixture(params=["memory", "sqlite", "sqlite, waiting for the disk"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """Each kind of store, empty."""
    kept: Store
    if request.param == "memory":
        kept = MemoryStore()
    else:
        kept = SqliteStore(str(tmp_path / "bpac.db"), wait_for_disk="disk" in request.param)
    yield kept
    kept.close()
