"""Replays as tasks, and their results: the metrics of one method over time."""

import hashlib
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bpac.replay.metrics import metrics_over_time
from bpac.replay.parallel import Arrays
from bpac.replay.replay import Replay
from bpac.replay.studies.methods import RoutingMethod
from bpac.replay.tables.builtin import builtin_table
from bpac.replay.tables.table import Table

# Number of steps at which metrics are recorded.
POINTS = 100
METRICS = ("empirical_risk", "expert_call_rate", "token_ratio", "threshold")


def recorded_steps(rows: int) -> NDArray[np.int64]:
    """The steps of a stream at which metrics are recorded, evenly spaced; the last step is one of them."""
    return np.unique(np.linspace(1, rows, POINTS).astype(np.int64))


@dataclass(frozen=True, slots=True)
class ReplayTask:
    """Replays of one method.

    Parameters
    ----------
    method: the method.
    stream: name of a built-in table, which is generated again for every run, or of the given table.
    rows: number of rows (default: that of the built-in table).
    table: a given table.
    order: whether the rows of a given table are shuffled for every run, or stay as given.
    """

    method: RoutingMethod
    stream: str
    rows: int | None = None
    table: Table | None = None
    order: Literal["shuffled", "given"] = "shuffled"

    def key(self) -> dict[str, Any]:
        """Everything that its numbers depend on."""
        return {
            # The content and not the name: a built-in table may have changed since a run was saved.
            "stream": fingerprint(self.table or builtin_table(self.stream, 0, self.rows, self.method.score)),
            "drawn": self.table is None,
            "order": self.order,
            "settings": self.method.settings.to_json(),
            "delay": asdict(self.method.delay),
            "points": POINTS,
        }

    def run(self, number: int) -> dict[str, NDArray[Any]]:
        """The recorded ``steps``, and the metrics at each of them as ``paths``."""
        method = self.method
        if self.table is None:
            table = builtin_table(self.stream, number, self.rows, method.score)
            replay = Replay(table, method.make_router, seed=number, order="given", delay=method.delay)
        else:
            replay = Replay(self.table, method.make_router, seed=number, order=self.order, delay=method.delay)
        ordered, path = replay.run(0, trace=True)
        steps = recorded_steps(len(ordered))
        return {"steps": steps, "paths": metrics_over_time(ordered, path)[:, steps - 1]}


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """The metrics of one method over time, in every run.

    Parameters
    ----------
    method: the method.
    steps: the recorded steps.
    paths: ``[run, metric, step]``, with the metrics in the order of ``METRICS``.
    """

    method: RoutingMethod
    steps: NDArray[np.int64]
    paths: NDArray[np.float64]

    @classmethod
    def of(cls, task: ReplayTask, arrays: Arrays) -> "ReplayResult":
        """The result of a task, given its arrays."""
        return cls(task.method, arrays["steps"][0], arrays["paths"])

    def final(self, metric: str) -> tuple[float, float]:
        """Mean and standard deviation over the runs, at the last step."""
        values = self.paths[:, METRICS.index(metric), -1]
        return float(values.mean()), float(values.std())


def fingerprint(table: Table) -> str:
    """A hash of the content of a table."""
    digest = hashlib.sha256()
    for name in table.__slots__:
        column = getattr(table, name)
        if name != "features":
            digest.update(name.encode() + (b"" if column is None else column.tobytes()))
    for name, column in table.features.items():
        digest.update(repr((name, column.tolist())).encode())
    return digest.hexdigest()
