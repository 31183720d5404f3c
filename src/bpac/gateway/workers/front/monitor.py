"""Whether models are down, in a front: the owner finds out, and says so to all fronts."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from bpac.gateway.health.model_health import ModelHealth
from bpac.gateway.health.monitor import HealthMonitor, WatchedServer
from bpac.gateway.health.records import DeploymentRecord
from bpac.gateway.telemetry.failures.upstream_failures import UpstreamRecord, UpstreamRecords
from bpac.gateway.telemetry.metrics.counters import Metrics
from bpac.gateway.telemetry.request_ids import CURRENT
from bpac.models.retrying import Failed

Tell = Callable[..., None]


class FrontMonitor(HealthMonitor):
    """Sends no probes: it reports to the owner what it suspects, and does what the owner says.

    Parameters
    ----------
    tell: sends a message to the owner.
    """

    def __init__(self, tell: Tell) -> None:
        super().__init__()
        self._tell = tell
        self._known: dict[str, Any] = {}

    def watch(self, servers: Sequence[WatchedServer], seconds: float) -> None:
        """Watch these servers and no others."""
        super().watch(servers, seconds)
        for server in servers:
            server.breaker.suspected = partial(self._tell, "suspect", server.label)
            self._apply(server)

    async def start(self) -> None:
        """The owner probes the models."""

    def know(self, states: dict[str, Any]) -> None:
        """Take over the state of all circuit breakers."""
        self._known = dict(states)
        for server in self.servers:
            self._apply(server)

    def changed(self, label: str, state: Any) -> None:
        """A circuit breaker has opened or closed."""
        self._known[label] = state
        for server in self.servers:
            if server.label == label:
                self._apply(server)

    def _apply(self, server: WatchedServer) -> None:
        state = self._known.get(server.label)
        if state is None:
            server.breaker.close()
            return
        text, status, unreadable = state
        failure = Failed(text, status)
        if unreadable:  # it has not ended other drafts: see ``ends_drafts``
            failure.__cause__ = ValueError("the response cannot be read")
        server.breaker.open(failure)


class ForwardedHealth(ModelHealth):
    """The health of a model or of one of its deployments, of which the owner hears as well.

    Parameters
    ----------
    label: the name of the model, with that of the deployment.
    tell: sends a message to the owner.
    answered: the labels that have answered since the last report.
    """

    __slots__ = ("_answered", "_label", "_tell")

    def __init__(self, label: str, tell: Tell, answered: set[str]) -> None:
        super().__init__()
        self._label = label
        self._tell = tell
        self._answered = answered

    def record_success(self) -> None:
        """Record an answer."""
        super().record_success()
        self._answered.add(self._label)

    def record_failure(self, kind: str, status: int | None, text: str, remedy: str = "") -> None:
        """Record a failed attempt, which was counted and logged."""
        self.record_here(kind, status, text)
        self._tell("health_failed", self._label, kind, status, text, remedy)

    def record_here(self, kind: str, status: int | None, text: str) -> None:
        """Record a failed attempt that the owner hears of in another way."""
        super().record_failure(kind, status, text)
        self._answered.discard(self._label)


class ForwardedRecord(UpstreamRecord):
    """Records the answers and the failures of one model; the owner counts and logs the failures of all fronts.

    Parameters
    ----------
    model: the name of the model.
    tell: sends a message to the owner.
    answered: the labels that have answered since the last report.
    """

    health: ForwardedHealth

    def __init__(self, model: str, tell: Tell, answered: set[str]) -> None:
        super().__init__(model, health=ForwardedHealth(model, tell, answered))
        self._tell = tell

    def succeeded(self) -> None:
        """Record an answer."""
        self.health.record_success()

    def failed(self, kind: str, status: int | None, text: str, fields: tuple[str, ...] = ()) -> None:
        """Record a failed attempt."""
        self.health.record_here(kind, status, text)
        self._tell("upstream_failed", self.model, [kind, status, text, list(fields)], CURRENT.get())


class ForwardedRecords(UpstreamRecords):
    """The records of all models by name.

    Parameters
    ----------
    metrics: of the front.
    tell: sends a message to the owner.
    """

    def __init__(self, metrics: Metrics, tell: Tell) -> None:
        super().__init__(metrics)
        self._tell = tell
        self.answered: set[str] = set()

    def __missing__(self, name: str) -> UpstreamRecord:
        record = self[name] = ForwardedRecord(name, self._tell, self.answered)
        return record

    def of_deployment(self, model: str, metrics: Metrics, deployment: str) -> UpstreamRecord:
        """The record of a deployment: it counts and logs here, and the owner hears of its health."""
        record = DeploymentRecord(model, metrics, deployment)
        record.health = ForwardedHealth(f"{model}/{deployment}", self._tell, self.answered)
        return record
