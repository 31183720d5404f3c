"""The metrics of a running gateway, read by Prometheus's own parser."""

from prometheus_client.parser import text_string_to_metric_families

from tests.gateway.raw import post
from tests.gateway.running import RunningGateway


def metric(gateway: RunningGateway, name: str, **labels: str) -> float | None:
    """The value of a metric with exactly these labels; None if ``/metrics`` does not have it."""
    page = post(gateway.url, b"", "/metrics", method="GET").body.decode()
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            if (sample.name, sample.labels) == (name, labels):
                return sample.value
    return None
