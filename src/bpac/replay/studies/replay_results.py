"""Replays as tasks: one method on one stream, and what came of it."""

import hashlib
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bpac.replay.experiments import RoutingMethod
from bpac.replay.parallel import Arrays
from bpac.replay.replay import Replay, metric_paths
from bpac.replay.tables.builtin import builtin_table
from bpac.replay.tables.table import Table

POINTS = 100
METRICS = ("empirical_risk", "expert_call_rate", "token_ratio", "threshold")


def looks(rows: int) -> NDArray[np.int64]:
    """The steps at which a stream is looked at."""
    return np.unique(np.linspace(1, rows, POINTS).astype(np.int64))


@dataclass(frozen=True, slots=True)
class ReplayTask:
    """Replays of one method.

    Parameters
    ----------
    method: which.
    stream: a built-in stream, drawn anew for every run, or what a given table is called.
    rows: another length than the built-in stream's own.
    table: a given table, shuffled anew for every run.
    """

    method: RoutingMethod
    stream: str
    rows: int | None = None
    table: Table | None = None

    def key(self) -> dict[str, Any]:
        """All that its numbers depend on."""
        return {
            # A draw tells built-in streams apart, and also a stream from the same one shaped otherwise.
            "stream": fingerprint(self.table or builtin_table(self.stream, 0, self.rows, self.method.score)),
            "drawn": self.table is None,
            "settings": self.method.settings.to_json(),
            "delay": asdict(self.method.delay),
            "points": POINTS,
        }

    def run(self, number: int) -> dict[str, NDArray[Any]]:
        """One replay."""
        method = self.method
        if self.table is None:
            table = builtin_table(self.stream, number, self.rows, method.score)
            replay = Replay(table, method.start, seed=number, order="given", delay=method.delay)
        else:
            replay = Replay(self.table, method.start, seed=number, delay=method.delay)
        ordered, path = replay.one(0, trace=True)
        steps = looks(len(ordered))
        return {"steps": steps, "paths": metric_paths(ordered, path)[:, steps - 1]}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a method came to.

    Parameters
    ----------
    method: which.
    steps: the steps at which it was looked at.
    paths: ``[run, metric, step]``, with the metrics in the order of ``METRICS``.
    """

    method: RoutingMethod
    steps: NDArray[np.int64]
    paths: NDArray[np.float64]

    @classmethod
    def of(cls, task: ReplayTask, arrays: Arrays) -> "Outcome":
        """The outcome of a task that was run."""
        return cls(task.method, arrays["steps"][0], arrays["paths"])

    def final(self, metric: str) -> tuple[float, float]:
        """Mean and standard deviation over the runs, at the last step."""
        values = self.paths[:, METRICS.index(metric), -1]
        return float(values.mean()), float(values.std())


def fingerprint(table: Table) -> str:
    """Tells tables apart by what stands in them."""
    digest = hashlib.sha256()
    for name in table.__slots__:
        column = getattr(table, name)
        digest.update(name.encode() + (b"" if column is None else column.tobytes()))
    return digest.hexdigest()
