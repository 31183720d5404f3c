"""Runs tasks many times, on all cores or on a Dask cluster; finished runs are saved so that a command can resume."""

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

# Runs that are computed and saved together.
CHUNK = 10
DASK_TIMEOUT = "10s"
Arrays = Mapping[str, NDArray[Any]]


class Task(Protocol):
    """Something that can be run many times, each time with another random seed; the shapes of its arrays are fixed."""

    def key(self) -> dict[str, Any]:
        """Everything that its numbers depend on, as JSON values; finished runs are found by it."""

    def run(self, number: int) -> dict[str, NDArray[Any]]:
        """The arrays of the run of that number. Equal numbers give equal runs."""


@dataclass(frozen=True, slots=True)
class Engine:
    """Where tasks run.

    Parameters
    ----------
    workers: number of processes on this machine; −1 for one per core.
    dask: address of a Dask scheduler whose workers run the tasks instead (extra ``dask``).
    """

    workers: int = -1
    dask: str | None = None

    def __post_init__(self) -> None:
        if self.workers < 1 and self.workers != -1:
            raise InputError(f"workers must be at least 1, or -1 for one per core; got {self.workers}")

    @contextmanager
    def parallel(self) -> Iterator[joblib.Parallel]:
        """Takes calls and yields their results as they finish."""
        if self.dask is None:
            yield joblib.Parallel(n_jobs=self.workers, return_as="generator_unordered")
            return
        try:
            from distributed import Client  # noqa: PLC0415  # an extra
        except ImportError as error:
            raise MissingExtra("dask", "dask") from error
        try:
            client = Client(self.dask, timeout=DASK_TIMEOUT, set_as_default=False)  # type: ignore[no-untyped-call]
        except (OSError, ValueError) as error:
            raise InputError(f"--dask {self.dask}: no Dask scheduler answers there ({error})") from error
        with client, joblib.parallel_config(backend="dask", client=client):
            yield joblib.Parallel(return_as="generator_unordered")


ALL_CORES = Engine()


@dataclass(frozen=True, slots=True)
class _Batch:
    """Some runs of a task, and the file that they are saved in."""

    task: Task
    runs: range
    file: Path


def run_tasks(tasks: Sequence[Task], runs: int, keep: Path, engine: Engine = ALL_CORES) -> list[Arrays]:
    """Run every task and return its arrays, with the runs along the first axis.

    Parameters
    ----------
    tasks: the tasks; equal ones are computed once.
    runs: number of runs of each task.
    keep: folder for finished runs; runs that are found there are not computed again.
    engine: where the tasks run.
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
                # Saved here and not by the workers, which may run on other machines.
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
    """The file is written completely or not at all."""
    unfinished = file.with_suffix(".part")
    with unfinished.open("wb") as opened:
        np.savez_compressed(opened, **arrays)  # type: ignore[arg-type]  # mypy takes the arrays for its flags
    unfinished.replace(file)


def _load(chunks: Sequence[_Batch]) -> Arrays:
    parts = []
    for chunk in chunks:
        with np.load(chunk.file) as stored:
            parts.append(dict(stored))
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
