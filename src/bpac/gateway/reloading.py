"""Reloads of the configuration: whole or not at all, one at a time, with every result in log, metrics and status."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any

from bpac.errors import BpacError
from bpac.gateway.config.file import Config
from bpac.gateway.telemetry.metrics.counters import Metrics

log = logging.getLogger("bpac.gateway")


class Reloads:
    """The reloads of a gateway.

    Parameters
    ----------
    load: reads the configuration.
    apply: has the gateway use a configuration, or raises and changes nothing.
    metrics: counts reloads as ``bpac_reloads_total{result}``.

    Attributes
    ----------
    failure: why the latest reload failed and since when; none if it succeeded, or if there was none.
    """

    def __init__(
        self, load: Callable[[], Config], apply: Callable[[Config], Awaitable[None]], metrics: Metrics
    ) -> None:
        self._load = load
        self._apply = apply
        self._metrics = metrics
        self._task: asyncio.Task[None] | None = None
        self._again = False
        self.count = 0
        self.failure: dict[str, Any] | None = None

    def request(self) -> None:
        """Reload the configuration soon; requests during a reload cause one more reload after it."""
        if self._task is not None and not self._task.done():
            self._again = True
        else:
            self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        await self.reload()
        while self._again:
            self._again = False
            await self.reload()

    async def reload(self) -> bool:
        """Reload the configuration; false if it cannot be used, and the old one stays in use."""
        try:
            await self._apply(await asyncio.to_thread(self._load))
        except Exception as error:  # whatever it is, the gateway goes on with what it has
            # Errors of ours quote settings, with secrets hidden, and never a prompt.
            text = str(error) if isinstance(error, BpacError | OSError) else type(error).__name__
            self.failure = {"since": round(time.time(), 3), "error": text}
            self._metrics.count("bpac_reloads_total", result="failed")
            log.error("the configuration was not reloaded: the old one stays in use", extra={"error": text})
            return False
        self.count += 1
        self.failure = None
        self._metrics.count("bpac_reloads_total", result="ok")
        log.info("configuration reloaded", extra={"reloads": self.count})
        return True

    def to_json(self) -> dict[str, Any]:
        """The number of reloads, and why the latest one failed, as JSON values."""
        return {"reloads": self.count, "failed_reload": self.failure}
