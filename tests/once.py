"""What takes long and is made once for all processes that run tests."""

import fcntl
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

T = TypeVar("T")


def made_once(name: str, make: Callable[[Path], T], factory: pytest.TempPathFactory, worker_id: str) -> T:
    """What the first process that needed it has made; the others wait for it, and read it.

    Parameters
    ----------
    name: of its own for each thing that is made.
    make: makes it, in a folder that all processes can read.
    factory: pytest's fixture ``tmp_path_factory``.
    worker_id: xdist's fixture of that name.
    """
    own = factory.getbasetemp()
    shared = own if worker_id == "master" else own.parent
    kept = shared / f"{name}.pickle"
    with (shared / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            kept.write_bytes(pickle.dumps(make(factory.mktemp(name))))
    made: T = pickle.loads(kept.read_bytes())
    return made
