"""Log lines about requests without a score: the expert answers them, so that no caller notices anything."""

import logging

from bpac.dashboard.history.unscored import COSTS_MORE
from bpac.dashboard.remedies import UNSCORED, remedies_of
from bpac.gateway.telemetry.log_rate import LogRate

log = logging.getLogger("bpac.gateway")


class UnscoredLog:
    """Logs the first request of each reason, and then at most one line per minute with the number since the last one.

    Parameters
    ----------
    route: the name of the route.
    """

    __slots__ = ("_rate", "_route")

    def __init__(self, route: str) -> None:
        self._route = route
        self._rate = LogRate()

    def add(self, reason: str) -> None:
        """A request has no score.

        Parameters
        ----------
        reason: as in ``bpac_unscored_total``. That drafts cost more than they save is no fault, and is not logged.
        """
        if reason != COSTS_MORE and (times := self._rate.count(reason)):
            remedy = remedies_of([reason], UNSCORED)[reason]
            known = {"route": self._route, "reason": reason, "since_last_line": times, "remedy": remedy}
            log.warning("no score: the expert answers instead of the draft", extra=known)
