"""Running many replays: on all cores or on a cluster, with a progress bar, and from where they were stopped."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import joblib
import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from bpac import __version__
from bpac.arguments import whole
from bpac.errors import InputError, MissingExtra

# Runs that are computed, and kept on disk, together.
CHUNK = 10
Arrays = Mapping[str, NDArray[Any]]


class Task(Protocol):
    """Something that can be run many times, each time with other luck, and gives arrays of fixed shapes."""

    def key(self) -> dict[str, Any]:
        """All that its numbers depend on, as JSON values."""

    def run(self, number: int) -> dict[str, NDArray[Any]]:
        """The run of that number, always the same."""


@dataclass(frozen=True, slots=True)
class Engine:
    """Where tasks run.

    Parameters
    ----------
    workers: processes on this machine; −1 for one a core.
    dask: address of a Dask scheduler, to run on its workers instead (extra ``dask``).
    """

    workers: int = -1
    dask: str | None = None

    def __post_init__(self) -> None:
        if self.workers < 1 and self.workers != -1:
            raise InputError(f"workers must be at least 1, or -1 for one a core; got {self.workers}")

    @contextmanager
    def parallel(self) -> Iterator[joblib.Parallel]:
        """Ready to take calls; results come as they are finished."""
        if self.dask is None:
            yield joblib.Parallel(n_jobs=self.workers, return_as="generator_unordered")
            return
        try:
            from distributed import Client  # noqa: PLC0415  # an extra
        except ImportError as error:
            raise MissingExtra("dask", "dask") from error
        try:
            client = Client(self.dask, timeout="10s", set_as_default=False)  # type: ignore[no-untyped-call]
        except (OSError, ValueError) as error:
            raise InputError(f"--dask {self.dask}: no scheduler answers there ({error})") from error
        with client, joblib.parallel_config(backend="dask", client=client):
            yield joblib.Parallel(return_as="generator_unordered")


HERE = Engine()


@dataclass(frozen=True, slots=True)
class _Batch:
    """Some runs of a task, and where they are kept."""

    task: Task
    runs: range
    file: Path


def run_tasks(tasks: Sequence[Task], runs: int, keep: Path, engine: Engine = HERE) -> list[Arrays]:
    """Run every task and return its arrays, with the runs along the first axis.

    Parameters
    ----------
    tasks: which; equal ones are computed once.
    runs: how many runs of each.
    keep: a folder for finished runs; what is found there is not computed again.
    engine: where they run.
    """
    whole(runs, "runs", 1)
    chunks = [_chunks(task, runs, keep) for task in tasks]
    missing = list({chunk.file: chunk for parts in chunks for chunk in parts if not chunk.file.exists()}.values())
    if missing:
        keep.mkdir(parents=True, exist_ok=True)
        with engine.parallel() as parallel:
            done: Any = parallel(joblib.delayed(_compute)(i, chunk.task, chunk.runs) for i, chunk in enumerate(missing))
            bar = tqdm(done, total=len(missing), desc="experiments", unit="chunk", leave=False, mininterval=0.5)
            for index, arrays in bar:
                # By us and not by the workers, who may be elsewhere.
                _keep(arrays, missing[index].file)
    return [_load(parts) for parts in chunks]


def _chunks(task: Task, runs: int, keep: Path) -> list[_Batch]:
    chunks = []
    key = {"version": __version__, "task": type(task).__name__} | task.key()
    for first in range(0, runs, CHUNK):
        part = range(first, min(first + CHUNK, runs))
        what = key | {"runs": [part.start, part.stop]}
        name = hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:24]
        chunks.append(_Batch(task, part, keep / f"{name}.npz"))
    return chunks


def _compute(index: int, task: Task, runs: range) -> tuple[int, dict[str, NDArray[Any]]]:
    results = [task.run(number) for number in runs]
    return index, {name: np.array([result[name] for result in results]) for name in results[0]}


def _keep(arrays: Arrays, file: Path) -> None:
    """The file appears whole or not at all."""
    unfinished = file.with_suffix(".part")
    with unfinished.open("wb") as opened:
        np.savez_compressed(opened, **arrays)  # type: ignore[arg-type]  # it takes them for its flags
    unfinished.replace(file)


def _load(chunks: Sequence[_Batch]) -> Arrays:
    parts = []
    for chunk in chunks:
        with np.load(chunk.file) as stored:
            parts.append(dict(stored))
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
