"""Every run draws the same examples, so that a failure can be repeated anywhere."""

import logging
from collections.abc import Iterator

import pytest
from hypothesis import settings
from hypothesis.internal.conjecture import providers

from tests.redis_servers import RedisServer, redis_server

# Hypothesis also draws the constants of modules that are imported, which depend on the tests that ran before.
providers._get_local_constants = lambda: providers._local_constants
settings.register_profile("fixed", derandomize=True, deadline=None, database=None)
settings.load_profile("fixed")


@pytest.fixture(autouse=True)
def log_handlers() -> Iterator[None]:
    """A command that a test runs in this process writes its log to that test's stream, and to no later one's."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.fixture(scope="session")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """One Redis server for all tests of a process; each test uses a name of its own on it."""
    with redis_server(tmp_path_factory.mktemp("redis")) as server:
        yield server
