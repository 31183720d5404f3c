"""The two servers under test, each started once."""

from collections.abc import Iterator

import pytest

from bpac.local.public_model import smollm2
from bpac.local.server import LocalServer


@pytest.fixture(scope="session")
def local() -> Iterator[LocalServer]:
    """The model in this package."""
    with LocalServer(slots=8) as server:
        yield server


@pytest.fixture(scope="session")
def public() -> Iterator[LocalServer]:
    """A public model of 135 million parameters."""
    with LocalServer(model=smollm2(), name="smollm2", slots=2, context=256) as server:
        yield server


@pytest.fixture(params=["local", "public"])
def either(request: pytest.FixtureRequest) -> LocalServer:
    """Each of the two servers in turn."""
    server: LocalServer = request.getfixturevalue(request.param)
    return server
