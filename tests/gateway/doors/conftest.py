"""A gateway with all doors for each file of tests."""

from collections.abc import Iterator

import pytest

from tests.gateway.doors.opened import EXPERT, Opened, opened


@pytest.fixture(scope="module")
def door() -> Iterator[Opened]:
    """A gateway for all tests of a file."""
    with opened(stream_keep_alive=0.05) as found:
        yield found


@pytest.fixture(autouse=True)
def _usual_answers(request: pytest.FixtureRequest) -> None:
    """Forget what models answered in an earlier test."""
    if "door" in request.fixturenames:
        request.getfixturevalue("door").play(EXPERT)
