"""Records of requests to one deployment of a model, and of the gateway's own requests."""

from bpac.gateway.health.model_health import ModelHealth
from bpac.gateway.telemetry.failures.upstream_failures import UpstreamRecord, remedy
from bpac.gateway.telemetry.metrics.counters import Metrics


class QuietRecord(UpstreamRecord):
    """Records the gateway's own requests in the health of a model, and writes no log: probes have their own lines."""

    def succeeded(self) -> None:
        """Record an answer."""
        self.health.record_success()

    def failed(self, kind: str, status: int | None, text: str, fields: tuple[str, ...] = ()) -> None:
        """Record a failed attempt, as ``UpstreamRecord.failed`` does."""
        self.health.record_failure(kind, status, text, remedy(kind, status, fields))


class DeploymentRecord(UpstreamRecord):
    """Records requests to one deployment: counted as failures of its model, and logged with its name.

    Parameters
    ----------
    model, metrics: as for ``UpstreamRecord``.
    deployment: the name of the deployment.
    """

    def __init__(self, model: str, metrics: Metrics, deployment: str) -> None:
        super().__init__(model, metrics, ModelHealth())
        self._deployment = deployment

    def failed(self, kind: str, status: int | None, text: str, fields: tuple[str, ...] = ()) -> None:
        """Record a failed attempt, as ``UpstreamRecord.failed`` does."""
        super().failed(kind, status, f"deployment {self._deployment}: {text}", fields)
