"""One run of all clients for all tests of this folder, also if several processes share them."""

import pytest

from tests.clients.run import Found, run_clients
from tests.once import made_once

# They import clients that are installed in an environment of their own.
collect_ignore = ["programs", "__main__.py"]


@pytest.fixture(scope="session")
def found(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Found:
    """What the run found; the first process that needs it runs the clients, and others wait for it."""
    return made_once("clients", run_clients, tmp_path_factory, worker_id)
