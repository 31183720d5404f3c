"""Stages of a request: each is timed, and is a span of the request's trace."""

import time
from types import TracebackType

from bpac.gateway.telemetry.metrics.counters import Metrics
from bpac.gateway.telemetry.tracing.traces import NoTraces, Traces


class Stages:
    """The stages of one route's requests.

    Parameters
    ----------
    metrics: where durations are recorded.
    route: the name of the route.
    traces: where spans are recorded (default: nowhere).

    >>> metrics = Metrics()
    >>> with Stages(metrics, "homework")("draft"):
    ...     pass
    >>> list(metrics.durations)
    [('homework', 'draft')]
    """

    def __init__(self, metrics: Metrics, route: str, traces: Traces | None = None) -> None:
        self.metrics = metrics
        self.route = route
        self.traces = traces or NoTraces()

    def __call__(self, name: str) -> "_Stage":
        """A stage that lasts for a ``with`` block; it is recorded also if the block raises."""
        return _Stage(self, name)


class _Stage:
    __slots__ = ("_name", "_span", "_stages", "_started")

    def __init__(self, stages: Stages, name: str) -> None:
        self._stages = stages
        self._name = name
        self._span = stages.traces.stage(name, stages.route)

    def __enter__(self) -> None:
        self._span.__enter__()
        self._started = time.perf_counter()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stages.metrics.time(self._name, self._stages.route, time.perf_counter() - self._started)
        self._span.__exit__(kind, error, trace)
