"""Failures of the store: since when, how often, why, and when to try again."""

import logging
import time
from collections.abc import Callable
from typing import Any

from bpac.errors import StoreError
from bpac.gateway.telemetry.log_rate import LogRate
from bpac.gateway.telemetry.metrics.counters import Metrics

log = logging.getLogger("bpac.gateway")

# Seconds before the first attempt to open a failed store again, and the most before a later one.
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
# After so many seconds without a failure, the next one is not a repetition.
STEADY = 60.0
# What the log says of a store that was opened again.
PROVED = "the store works again: every durable entry was read back, and nothing was lost"
UNKNOWN = "the cause is in the gateway's log"
DEFAULT_REMEDY = "see the gateway's log, and restart the gateway"


class StoreRecord:
    """What is known about the store of a gateway.

    Parameters
    ----------
    metrics: counts ``bpac_store_failures_total``.
    clock: a monotonic clock, in seconds.

    >>> record = StoreRecord(Metrics())
    >>> record.failed(StoreError("bpac.db failed", cause="the disk is full", remedy="free space"))
    >>> record.to_json()["cause"], record.failures
    ('the disk is full', 1)
    """

    def __init__(self, metrics: Metrics, clock: Callable[[], float] = time.monotonic) -> None:
        metrics.count("bpac_store_failures_total", by=0)
        self._metrics = metrics
        self._clock = clock
        self._rate = LogRate(clock)
        self.failure: StoreError | None = None
        self.failures = 0
        self._since: float | None = None
        self._pause = FIRST_PAUSE
        self._due = 0.0
        self._works_since = clock()

    def failed(self, failure: StoreError) -> None:
        """The store works no longer; the store itself has logged why."""
        if self.failure is not None:
            return
        now = self._clock()
        self.failure = failure
        self.failures += 1
        self._metrics.count("bpac_store_failures_total")
        self._since = round(time.time(), 3)
        # A store that fails again at once is not opened every second.
        if now - self._works_since >= STEADY:
            self._pause = FIRST_PAUSE
        self._due = now + self._pause

    @property
    def due(self) -> bool:
        """Whether it is time to open the store again."""
        return self._clock() >= self._due

    def still_fails(self, failure: StoreError) -> None:
        """The store could not be opened again."""
        self.failure = failure
        self._pause = min(2.0 * self._pause, LONGEST_PAUSE)
        self._due = self._clock() + self._pause
        if times := self._rate.count("still"):
            known = {"cause": failure.cause, "remedy": failure.remedy or DEFAULT_REMEDY, "since_last_line": times}
            log.error("the store still cannot be used: no request is answered", extra=known | {"error": str(failure)})

    def works_again(self, line: str | None = PROVED) -> None:
        """The store can be used again.

        Parameters
        ----------
        line: what the log says (default: that nothing is missing); none if it has said more already.
        """
        seconds = round(time.time() - (self._since or time.time()), 3)
        self.failure, self._since = None, None
        self._works_since = self._clock()
        self._pause = min(2.0 * self._pause, LONGEST_PAUSE)
        if line is not None:
            log.warning(line, extra={"seconds": seconds, "failures": self.failures})

    def to_json(self) -> dict[str, Any]:
        """The same as JSON values."""
        failure = self.failure
        return {
            "ok": failure is None,
            "cause": None if failure is None else failure.cause or UNKNOWN,
            "error": None if failure is None else str(failure),
            "remedy": None if failure is None else failure.remedy or DEFAULT_REMEDY,
            "since": self._since,
            "failures": self.failures,
        }
