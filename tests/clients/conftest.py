"""One run of all clients for all tests of this folder, also if several processes share them."""

import fcntl
import pickle

import pytest

from tests.clients.run import Found, run_clients

# They import clients that are installed in an environment of their own.
collect_ignore = ["programs", "__main__.py"]


@pytest.fixture(scope="session")
def found(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Found:
    """What the run found; the first process that needs it runs the clients, and others wait for it."""
    own = tmp_path_factory.getbasetemp()
    shared = own if worker_id == "master" else own.parent
    kept = shared / "clients.pickle"
    with (shared / "clients.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            kept.write_bytes(pickle.dumps(run_clients(tmp_path_factory.mktemp("clients"))))
    result = pickle.loads(kept.read_bytes())
    assert isinstance(result, Found)
    return result
