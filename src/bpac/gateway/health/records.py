"""A record of the gateway's own requests, which writes no log: their results have lines of their own."""

from bpac.gateway.telemetry.upstream_failures import UpstreamRecord, remedy


class QuietRecord(UpstreamRecord):
    """Records answers and failures in the health of a model, and nowhere else."""

    def succeeded(self) -> None:
        """Record an answer."""
        self.health.record_success()

    def failed(self, kind: str, status: int | None, text: str, fields: tuple[str, ...] = ()) -> None:
        """Record a failed attempt, as ``UpstreamRecord.failed`` does."""
        self.health.record_failure(kind, status, f"{text}: {remedy(kind, status, fields)}")
