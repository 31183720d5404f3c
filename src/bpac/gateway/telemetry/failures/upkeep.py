"""What a gateway does again and again beside its requests. What fails is tried again, and an operator sees it."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

from bpac.errors import BpacError
from bpac.gateway.telemetry.log_rate import LogRate
from bpac.gateway.telemetry.metrics.counters import Metrics

log = logging.getLogger("bpac.gateway")

LIMITS = "see the gateway's log: if it names threads, files or memory, raise that limit; if not, restart the gateway"


class Failure(NamedTuple):
    """What an operator should know if some work fails.

    Parameters
    ----------
    what: what happened, in one sentence without a full stop.
    cost: what it costs while it lasts.
    remedy: what to do.
    """

    what: str
    cost: str
    remedy: str = LIMITS


# By the name of the work.
FAILURES = {
    "deadlines": Failure(
        "deadlines of open requests and outcomes cannot be checked",
        "late ones are not given up, and thresholds wait for them",
    ),
    "store": Failure("a failed store cannot be opened again", "no request is answered"),
    "budgets": Failure(
        "the budgets cannot be saved",
        "after a restart they begin anew",
        "make room on the disk, and check the permissions of the folder of the store",
    ),
    "configurations": Failure("an earlier configuration cannot be closed", "its connections stay open"),
    "breakers": Failure(
        "fronts do not learn which models are down", "their requests wait for a model that does not answer"
    ),
    "reports": Failure("a front cannot report what it counted", "metrics and status lack its requests"),
}


class Upkeep:
    """Runs such work, and knows what of it fails at present.

    Parameters
    ----------
    metrics: counts ``bpac_upkeep_failures_total{work}``.

    >>> upkeep = Upkeep(Metrics())
    >>> upkeep.failed("budgets", OSError("no space left on device"))
    >>> (trouble,) = upkeep.to_json()
    >>> trouble["what"], trouble["count"]
    ('the budgets cannot be saved: no space left on device', 1)
    >>> upkeep.works("budgets")
    >>> upkeep.to_json()
    []
    """

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._rate = LogRate()
        self._failing: dict[str, dict[str, Any]] = {}

    async def repeat(self, every: float, work: Mapping[str, Callable[[], Awaitable[object]]]) -> None:
        """Do all of the work every so many seconds, until this is cancelled; nothing that fails stops the rest.

        Parameters
        ----------
        every: seconds.
        work: by its name in ``FAILURES``.
        """
        while True:
            await asyncio.sleep(every)
            for name, do in work.items():
                try:
                    await do()
                except Exception as error:  # whatever it is, it is tried again
                    self.failed(name, error)
                else:
                    self.works(name)

    def failed(self, name: str, error: Exception) -> None:
        """Some work failed."""
        self._metrics.count("bpac_upkeep_failures_total", work=name)
        # Other errors may quote what a caller sent; notes are our own.
        text = str(error) if isinstance(error, BpacError | OSError) else type(error).__name__
        text = " ".join([text, *getattr(error, "__notes__", ())])
        failure, known = FAILURES[name], self._failing.get(name)
        self._failing[name] = {
            "work": name,
            "what": f"{failure.what}: {text}",
            "since": round(time.time(), 3) if known is None else known["since"],
            "count": 1 if known is None else known["count"] + 1,
            "cost": failure.cost,
            "remedy": failure.remedy,
        }
        if times := self._rate.count(name):
            extra = {"work": name, "why": text, "remedy": failure.remedy, "since_last_line": times}
            log.error(failure.what, extra=extra, exc_info=error)

    def works(self, name: str) -> None:
        """Some work was done."""
        known = self._failing.pop(name, None)
        if known is not None:
            log.warning("upkeep works again", extra={"work": name, "failures": known["count"]})

    def to_json(self) -> list[dict[str, Any]]:
        """What fails at present, as JSON values."""
        return list(self._failing.values())
