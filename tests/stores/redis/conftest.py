from collections.abc import Iterator

import pytest

from tests.stores.redis.shared_game import close_stores


@pytest.fixture(autouse=True)
def _no_store_stays_open() -> Iterator[None]:
    """Connections that are left to the garbage collector would be warnings in some other test."""
    yield
    close_stores()
