"""What fronts have seen and counted, added to what the owner knows; and what the owner knows of the models."""

from collections.abc import Iterator
from typing import Any

from bpac.gateway.chat.upstreams.upstream import Upstream
from bpac.gateway.games.rounds.draft_outages import UNREADABLE
from bpac.gateway.health.model_health import ModelHealth
from bpac.gateway.health.monitor import WatchedServer
from bpac.gateway.service import Service
from bpac.models.retrying import Failed


class FrontTelemetry:
    """Counts, failures and circuit breakers of all fronts.

    Parameters
    ----------
    service: the owner's service.
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        self._breakers: dict[str, list[Any] | None] = {}

    def counted(self, report: dict[str, Any]) -> None:
        """Add what a front has counted."""
        metrics = self._service.metrics
        for name, labels, by in report["counts"]:
            metrics.count(name, by=by, **dict(labels))
        for route, stage, cells in report["durations"]:
            metrics.add_times(stage, route, cells)
        self._service.rejections.add(report["refused"])
        for label in report["answered"]:
            if label in self._service.config.models:
                self._service.records[label].succeeded()
            elif (health := self.health(label)) is not None:
                health.record_success()

    def health(self, label: str) -> ModelHealth | None:
        """The health of a model, or of one of its deployments."""
        if label in self._service.config.models:
            return self._service.records[label].health
        for server in self._service.monitor.servers:
            if server.label == label and isinstance(server.model, Upstream):
                return server.model.record.health
        return None

    def upstream_failed(self, model: str, kind: str, status: int | None, text: str, fields: tuple[str, ...]) -> None:
        """Record a failed attempt of a front to get an answer of a model."""
        if model in self._service.config.models:
            self._service.records[model].failed(kind, status, text, fields)

    def suspect(self, label: str) -> None:
        """Find out whether a model server is down, unless this is being done."""
        for server in self._service.monitor.servers:
            if server.label == label:
                self._service.monitor.suspect(server)

    def changed_breakers(self) -> Iterator[tuple[str, list[Any] | None]]:
        """The circuit breakers that have opened or closed since this was asked last, with why each is open."""
        for server in self._service.monitor.servers:
            state = _state(server)
            if self._breakers.get(server.label) != state:
                self._breakers[server.label] = state
                yield server.label, state

    def open_breakers(self) -> dict[str, list[Any]]:
        """The circuit breakers that are open, with why."""
        return {label: state for label, state in self._breakers.items() if state is not None}


def _state(server: WatchedServer) -> list[Any] | None:
    """Why a circuit breaker is open, and whether that was an unreadable response; none if it is closed."""
    failure: Failed | None = server.breaker.failure
    if failure is None:
        return None
    return [str(failure), failure.status, isinstance(failure.__cause__, UNREADABLE)]
