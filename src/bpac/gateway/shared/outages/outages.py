"""Outages of Redis as the gateway records them: noticed where a call fails, so that none depends on somebody's look."""

from bpac.errors import StoreError
from bpac.gateway.telemetry.failures.store_failures import StoreRecord

# Nothing is read back here: whether something was lost, each game finds out for itself with its next call.
BACK = "Redis can be used again"


class RedisOutages:
    """Who cannot use Redis at present; an outage lasts from the first that cannot to the last that can again.

    Parameters
    ----------
    record: what is shown and counted of it.
    """

    def __init__(self, record: StoreRecord) -> None:
        self._record = record
        self._failing: set[object] = set()
        self._lost = False

    def begin(self, who: object, error: StoreError) -> None:
        """Note that a game, or the opening of games, cannot use Redis; again if it still cannot.

        Parameters
        ----------
        who: the game, or the opening.
        error: why.
        """
        self._failing.add(who)
        self._record.failed(error)

    def end(self, who: object, *, lost: bool = False) -> None:
        """Note that it can again; nothing happens if it could before.

        Parameters
        ----------
        who: the game, or the opening.
        lost: whether its journal lost entries, which the log has said (default: false).
        """
        if who not in self._failing:
            return
        self._failing.remove(who)
        self._lost = self._lost or lost
        if not self._failing:
            self._record.works_again(None if self._lost else BACK)
            self._lost = False
