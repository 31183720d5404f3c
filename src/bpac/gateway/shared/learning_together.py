"""The gateway that folds a shared game exchanges what is learned with those that fold other segments of its route."""

import logging
from collections.abc import Callable

from bpac.errors import StoreError
from bpac.routing.learning.learning import Learning
from bpac.stores.redis.folding.score_pool import ScorePool

log = logging.getLogger("bpac.gateway")


class LearningTogether:
    """The part of one game in what several learn together.

    Parameters
    ----------
    number: the number of the game in its store.
    pool: gives what the game learns together with others; none if it learns alone.
    """

    def __init__(self, number: int, pool: Callable[[], ScorePool | None]) -> None:
        self._number = number
        self._pool_of = pool
        self._pool: ScorePool | None = None
        self._alone = False  # what other segments have learned could not be read

    async def look(self, learning: Learning | None, *, quietly: bool) -> None:
        """Exchange audits and scores.

        Parameters
        ----------
        learning: what the game has learned; none if it learns nothing, or if another gateway folds it.
        quietly: whether the log says elsewhere why the exchange fails.
        """
        if learning is None:
            if self._pool is not None:
                self._pool.remove(self._number)
                self._pool = None
            return
        self._pool = self._pool or self._pool_of()
        if self._pool is None:
            return
        self._pool.add(self._number, learning)
        try:
            await self._pool.exchange()
        except StoreError as error:
            if not quietly and not self._alone:
                log.warning("segments cannot learn together", extra={"game": self._number, "error": str(error)})
            self._alone = True
        else:
            self._alone = False
