"""Refusals: requests that were turned away by a limit or a check, counted for metrics and logged at a bounded rate."""

import logging
from collections import Counter

from bpac.gateway.http.bad_request import BadRequest
from bpac.gateway.telemetry.log_rate import LogRate
from bpac.gateway.telemetry.metrics import Metrics

log = logging.getLogger("bpac.gateway")

# Codes of errors that are refusals by a limit or a check, not mistakes in an otherwise welcome request.
GUARDED = frozenset(
    {
        "host_not_allowed",
        "invalid_api_key",
        "missing_role",
        "not_json",
        "not_yours",
        "origin_not_allowed",
        "too_deep",
        "too_large",
        "too_many_values",
    }
)


class Rejections:
    """Counts refusals by reason, and logs the first of each reason and then at most one line a minute.

    Parameters
    ----------
    metrics: where they are counted, as ``bpac_http_refused_total{reason}``.

    >>> refusals = Rejections(Metrics())
    >>> refusals.count("head_timeout", "192.0.2.1")
    >>> refusals.counts
    {'head_timeout': 1}
    """

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._counts: Counter[str] = Counter()
        self._rate = LogRate()

    @property
    def counts(self) -> dict[str, int]:
        """How often each reason came since the start."""
        return dict(self._counts)

    def count(self, reason: str, address: str) -> None:
        """Count a refusal.

        Parameters
        ----------
        reason: a word for metrics; one of a fixed set.
        address: whom it was said to; the log shows that of the latest.
        """
        self._counts[reason] += 1
        self._metrics.count("bpac_http_refused_total", reason=reason)
        if refused := self._rate.count(reason):
            log.warning("request refused", extra={"reason": reason, "address": address, "since_last_line": refused})

    def count_error(self, error: Exception, address: str) -> None:
        """Count what an error says, if it is a refusal by a limit or a check."""
        if isinstance(error, BadRequest) and error.code in GUARDED:
            self.count(error.code, address)
