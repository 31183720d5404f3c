"""The gateway that folds a shared game moves its old entries from Redis to files, behind the requests.

If that fails, nothing is cut: Redis keeps the entries, the log and the status say why, and it is tried again.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bpac.dashboard.remedies import SEVERAL
from bpac.dashboard.replicas import FILLS_UP
from bpac.gateway.config.archives import ArchiveSettings
from bpac.gateway.games.shown.troubles import GameTrouble
from bpac.gateway.telemetry.metrics.counters import Metrics
from bpac.stores.redis.archives import NotCut, RedisArchives
from bpac.stores.redis.server.connecting import RedisGone
from bpac.stores.redis.store import RedisStore
from bpac.stores.store import Game

log = logging.getLogger("bpac.gateway")

# Seconds until it is tried again after a failure, and until the next look at a game that has no snapshot yet.
AFTER_FAILURE, NO_SNAPSHOT = 30.0, 1.0


class GameArchiving:
    """The archives of one game, as far as this gateway writes them.

    Parameters
    ----------
    store: the journals.
    game: the game.
    settings: gives the folder and how much stays in Redis; none if nothing is archived.
    metrics: counts entries and failures.
    clock: a monotonic clock (default: that of this machine).

    Attributes
    ----------
    error: why the latest attempt failed; none if it did not.
    since: when attempts began to fail, in seconds since 1970; none if they do not.
    """

    def __init__(
        self,
        store: RedisStore,
        game: Game,
        settings: Callable[[], ArchiveSettings | None],
        metrics: Metrics,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._archives = RedisArchives(store, game)
        self._game = game
        self._settings = settings
        self._metrics = metrics
        self._clock = clock
        self.error: str | None = None
        self.since: float | None = None
        self._file = ""
        # Nothing is to be done before the journal has so many entries, nor before that time.
        self._due_at, self._not_before = 0, 0.0
        self._task: asyncio.Task[None] | None = None
        if settings() is not None:  # an alert sees a counter grow only if it was there before
            metrics.count("bpac_archive_failures_total", by=0, route=game.route)

    def look(self, token: int, entries: int) -> None:
        """Begin to archive if there is enough of it. This does not wait.

        Parameters
        ----------
        token: of the folder of the game; 0 if another gateway folds it.
        entries: the number of entries of the journal.
        """
        settings = self._settings()
        if settings is None or not token:
            self._due_at = 0  # the next folder may be another one, and archive up to another point
            self.error = self.since = None
            return
        if self._task is None and entries >= self._due_at and self._clock() >= self._not_before:
            self._task = asyncio.create_task(self._run(settings, token, entries))

    async def _run(self, settings: ArchiveSettings, token: int, entries: int) -> None:
        try:
            self._due_at = await asyncio.to_thread(self._archives.due_at, settings.keep)
            if not self._due_at:
                self._not_before = self._clock() + NO_SNAPSHOT
            elif entries >= self._due_at:
                await self._archive(settings, token)
                self._due_at = 0
        except (NotCut, RedisGone) as error:
            # Another gateway folds the game by now, or there is a trouble of the store; neither is one of the folder.
            log.info("nothing was archived", extra={"game": self._game.number, "why": str(error)})
            self._not_before = self._clock() + NO_SNAPSHOT
        except Exception as error:  # whatever it is, nothing was cut, and requests go on
            self._failed(settings, error)
        finally:
            self._task = None

    async def _archive(self, settings: ArchiveSettings, token: int) -> None:
        found = await asyncio.to_thread(self._archives.archive, Path(settings.folder), token)
        self._file = found.file
        extra = {"game": self._game.number, "file": found.file, "first": found.first, "last": found.last}
        log.info("old entries were archived", extra=extra)
        count = found.last - found.first + 1
        self._metrics.count("bpac_archived_entries_total", by=count, route=self._game.route)
        self.error = self.since = None

    def _failed(self, settings: ArchiveSettings, error: Exception) -> None:
        why = (error.strerror if isinstance(error, OSError) else None) or str(error)
        if self.error is None:
            self.since = time.time()
        self.error = why
        self._metrics.count("bpac_archive_failures_total", route=self._game.route)
        log.error(
            "old entries cannot be archived: Redis keeps them",
            extra={"game": self._game.number, "folder": settings.folder, "why": why, "remedy": SEVERAL["archive"]},
        )
        self._not_before = self._clock() + AFTER_FAILURE

    async def stop(self) -> None:
        """End what is being written; nothing is cut then."""
        self._archives.stopped = True
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)

    @property
    def trouble(self) -> GameTrouble | None:
        """What an operator should repair; none if nothing is known to be wrong."""
        settings = self._settings()
        if self.error is None or settings is None:
            return None
        return GameTrouble(
            f"old entries cannot be archived to {settings.folder}: {self.error}", FILLS_UP, SEVERAL["archive"]
        )

    def to_json(self) -> dict[str, Any] | None:
        """The part of the status about archives; none if nothing is archived."""
        settings = self._settings()
        if settings is None:
            return None
        values = {"folder": settings.folder, "keep": settings.keep, "file": self._file or None}
        return values | {"error": self.error, "since": self.since}
