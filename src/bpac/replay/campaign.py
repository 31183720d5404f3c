"""Running experiments: on all cores, with a progress bar, and from where they were stopped."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from bpac import __version__
from bpac.betting.numbers import whole
from bpac.replay.builtin import builtin_table
from bpac.replay.experiments import ALPHA, Experiment, Method
from bpac.replay.replay import Replay, metric_paths
from bpac.replay.start import Start

# Runs that are computed, and kept on disk, together.
CHUNK = 10
POINTS = 100
METRICS = ("empirical_risk", "expert_call_rate", "token_ratio", "threshold")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a method came to.

    Parameters
    ----------
    method: which.
    steps: the steps at which it was looked at.
    paths: ``[run, metric, step]``, with the metrics in the order of ``METRICS``.
    """

    method: Method
    steps: NDArray[np.int64]
    paths: NDArray[np.float64]

    def final(self, metric: str) -> tuple[float, float]:
        """Mean and standard deviation over the runs, at the last step."""
        values = self.paths[:, METRICS.index(metric), -1]
        return float(values.mean()), float(values.std())


@dataclass(frozen=True, slots=True)
class _Chunk:
    """Some runs of one method, and where they are kept."""

    stream: str
    rows: int | None
    method: Method
    runs: range
    file: Path

    def compute(self) -> None:
        """Run them and keep them; the file appears whole or not at all."""
        paths = []
        start = Start(self.method.policy, self.method.epsilon, ALPHA, self.method.exploration)
        for run in self.runs:
            table = builtin_table(self.stream, run, self.rows)
            steps = _steps(len(table))
            ordered, path = Replay(table, start, seed=run, order="given", delay=self.method.delay).one(0, trace=True)
            paths.append(metric_paths(ordered, path)[:, steps - 1])
        unfinished = self.file.with_suffix(".part")
        with unfinished.open("wb") as file:
            np.savez_compressed(file, steps=steps, paths=np.array(paths))
        unfinished.replace(self.file)


def run_experiments(
    experiments: Sequence[Experiment], runs: int, keep: Path, workers: int = -1
) -> dict[str, list[Outcome]]:
    """Run experiments and return the outcome of each method.

    Parameters
    ----------
    experiments: which.
    runs: replays of each method.
    keep: a folder for finished runs; what is found there is not computed again.
    workers: processes; −1 for one a core.
    """
    whole(runs, "runs", 1)
    keep.mkdir(parents=True, exist_ok=True)
    chunks = {
        (experiment.name, index): _chunks(experiment, method, runs, keep)
        for experiment in experiments
        for index, method in enumerate(experiment.methods)
    }
    missing = [chunk for parts in chunks.values() for chunk in parts if not chunk.file.exists()]
    # Experiments share methods: each file is computed once.
    once = list({chunk.file: chunk for chunk in missing}.values())
    parallel = joblib.Parallel(n_jobs=workers, return_as="generator_unordered")
    done: Any = parallel(joblib.delayed(chunk.compute)() for chunk in once)
    for _ in tqdm(done, total=len(once), desc="experiments", unit="chunk", leave=False, mininterval=0.5):
        pass
    return {
        experiment.name: [_load(method, chunks[experiment.name, i]) for i, method in enumerate(experiment.methods)]
        for experiment in experiments
    }


def _steps(rows: int) -> NDArray[np.int64]:
    return np.unique(np.linspace(1, rows, POINTS).astype(np.int64))


def _chunks(experiment: Experiment, method: Method, runs: int, keep: Path) -> list[_Chunk]:
    chunks = []
    for first in range(0, runs, CHUNK):
        part = range(first, min(first + CHUNK, runs))
        what = {
            "version": __version__,
            "stream": [experiment.stream, experiment.rows],
            "settings": method.settings.to_json(),
            "delay": asdict(method.delay),
        }
        key = json.dumps(what | {"runs": [part.start, part.stop], "points": POINTS}, sort_keys=True)
        file = keep / f"{hashlib.sha256(key.encode()).hexdigest()[:24]}.npz"
        chunks.append(_Chunk(experiment.stream, experiment.rows, method, part, file))
    return chunks


def _load(method: Method, chunks: Sequence[_Chunk]) -> Outcome:
    parts = [np.load(chunk.file) for chunk in chunks]
    return Outcome(method, parts[0]["steps"], np.concatenate([part["paths"] for part in parts]))
