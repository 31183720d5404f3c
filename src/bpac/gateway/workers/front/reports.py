"""What a front has counted since its last report to the owner."""

from typing import Any

from bpac.gateway.telemetry.failures.rejections import Rejections
from bpac.gateway.telemetry.metrics.counters import Labels, Metrics


class Reports:
    """Differences between what was counted and what was reported.

    Parameters
    ----------
    metrics: the counters and durations of the front.
    rejections: the requests that it rejected.

    >>> metrics = Metrics()
    >>> reports = Reports(metrics, Rejections(metrics))
    >>> metrics.count("bpac_answers_total", route="homework", answered_by="draft")
    >>> reports.take()["counts"]
    [['bpac_answers_total', [['route', 'homework'], ['answered_by', 'draft']], 1]]
    >>> reports.take()["counts"]
    []
    """

    def __init__(self, metrics: Metrics, rejections: Rejections) -> None:
        self._metrics = metrics
        self._rejections = rejections
        self.begin()

    def begin(self) -> None:
        """Report everything again: the owner is a new one, which knows nothing."""
        self._counts: dict[tuple[str, Labels], int] = {}
        self._durations: dict[tuple[str, str], list[float]] = {}
        self._refused: dict[str, int] = {}

    def take(self) -> dict[str, Any]:
        """What was counted since the last report."""
        counts = [
            [name, [list(label) for label in labels], count - self._counts.get((name, labels), 0)]
            for (name, labels), count in self._metrics.counts.items()
            if count != self._counts.get((name, labels))
        ]
        durations = []
        for (route, stage), cells in self._metrics.durations.items():
            known = self._durations.get((route, stage), [0.0] * len(cells))
            if cells != known:
                durations.append([route, stage, [now - then for now, then in zip(cells, known, strict=True)]])
        refused = self._rejections.counts
        report = {
            "counts": counts,
            "durations": durations,
            "refused": {
                reason: count - self._refused.get(reason, 0)
                for reason, count in refused.items()
                if count != self._refused.get(reason)
            },
        }
        self._counts = dict(self._metrics.counts)
        self._durations = {key: list(cells) for key, cells in self._metrics.durations.items()}
        self._refused = refused
        return report
