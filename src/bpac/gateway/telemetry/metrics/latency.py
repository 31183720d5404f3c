"""Latency by stage: how long the stages of a request take, from the same histograms that Prometheus reads."""

from collections.abc import Sequence
from typing import Any

from bpac.gateway.telemetry.metrics.counters import BOUNDS, Metrics

STAGES = ("draft", "owner", "journal", "expert", "grading")
QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}


def latency(metrics: Metrics, route: str) -> list[dict[str, Any]]:
    """The stages of a route in their order, with durations in seconds since the process started, as JSON values.

    >>> metrics = Metrics()
    >>> for seconds in (0.2, 0.2, 0.2, 0.8):
    ...     metrics.time("draft", "homework", seconds)
    >>> [stage] = latency(metrics, "homework")
    >>> stage["count"], round(stage["mean"], 3), stage["p50"], stage["p90"]
    (4, 0.35, 0.2, 0.8)
    """
    times = metrics.times(route)
    stages = []
    for stage in sorted(times, key=lambda name: STAGES.index(name) if name in STAGES else len(STAGES)):
        *cells, seconds = times[stage]
        count = round(sum(cells))
        quantiles = {name: _quantile(cells, share) for name, share in QUANTILES.items()}
        stages.append({"stage": stage, "count": count, "mean": seconds / count, **quantiles})
    return stages


def _quantile(cells: Sequence[float], share: float) -> float:
    """A quantile as Prometheus estimates it: interpolated within its bucket, and at most the last bound."""
    rank = share * sum(cells)
    below = 0.0
    for index, cell in enumerate(cells[:-1]):
        if cell and below + cell >= rank:
            start = BOUNDS[index - 1] if index else 0.0
            return start + (BOUNDS[index] - start) * (rank - below) / cell
        below += cell
    return BOUNDS[-1]
