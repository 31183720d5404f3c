"""One browser for all tests of a file: starting one takes longer than most of them."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.dashboard.browser import running_browser

# Generous, because the machine may be busy.
expect.set_options(timeout=60_000)


# Not for the whole session: while it runs, so does an event loop in this thread, and tests elsewhere start their own.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A real browser."""
    with running_browser() as running:
        yield running
