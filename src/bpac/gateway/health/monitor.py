"""Watching the models: a probe of each at the start, and requests of the gateway's own while one may be down.

1. At the start every model is probed, all at once; each has one line in the log. The gateway waits at most ``WAIT``
   seconds for them before it listens.
2. If attempts of requests fail in a row, or the probe has no response, a *trial* is sent: a request for one token.
3. If the trial has no response either, the breaker opens, and trials are repeated, with longer and longer pauses.
4. A trial that is answered closes the breaker. If it was open, the model is probed again: it may have been restarted
   with other settings.
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from bpac.gateway.health.breaker import Breaker
from bpac.gateway.health.findings import Finding, in_one_line, worst
from bpac.gateway.health.probe import Probed, probe, trial
from bpac.gateway.health.roles import ModelRole

log = logging.getLogger("bpac.gateway")

# Seconds that the start of the gateway waits for probes.
WAIT = 1.0
# Seconds before the second trial, doubled before each further one up to the longest pause.
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
_LEVELS = {"ok": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


@dataclass(slots=True)
class _Server:
    """One server of a model, and what is known about it."""

    label: str
    model: Probed
    breaker: Breaker
    role: ModelRole
    findings: list[Finding] = field(default_factory=list)
    watching: "asyncio.Task[None] | None" = None


class HealthMonitor:
    """Probes models, and opens and closes their circuit breakers.

    Parameters
    ----------
    seconds: how long a probe or a trial may take.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._tasks: set[asyncio.Task[None]] = set()
        self._servers: dict[str, list[_Server]] = {}

    def watch(self, name: str, label: str, model: Probed, breaker: Breaker, role: ModelRole) -> None:
        """Watch a server of a model.

        Parameters
        ----------
        name: the name of the model.
        label: the name of this server, which is that of the model if it has no other.
        model: sends the probes and trials; it records failures without logging them, because the monitor does.
        breaker: the circuit breaker of requests to this server.
        role: what the model is used for.
        """
        server = _Server(label, model, breaker, role)
        self._servers.setdefault(name, []).append(server)
        breaker.suspected = _Suspicion(self, server)

    async def start(self) -> None:
        """Probe all models, and wait a moment for the results; those that take longer come later."""
        servers = [server for several in self._servers.values() for server in several]
        probes = [self._spawn(self._probe(server)) for server in servers]
        if probes:
            await asyncio.wait(probes, timeout=WAIT)

    async def stop(self) -> None:
        """End all probes and trials."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def is_down(self, name: str) -> bool:
        """Whether all servers of a model are known to be down."""
        return all(server.breaker.failure is not None for server in self._servers[name])

    def report(self, name: str) -> dict[str, Any]:
        """What is known about a model beside its failures, as JSON values: its breaker and its latest probe."""
        servers = self._servers[name]
        report: dict[str, Any] = {"breaker": _state(self.is_down(name)), "probe": _as_json(servers)}
        if len(servers) > 1:
            report["deployments"] = {one.label: _state(one.breaker.failure is not None) for one in servers}
        return report

    def summary(self) -> dict[str, dict[str, Any]]:
        """Of each model whether it is up, and the worst level of its latest probe; for callers without a key."""
        return {
            name: {"up": not self.is_down(name), "probe": worst([one for server in servers for one in server.findings])}
            for name, servers in self._servers.items()
        }

    def suspect(self, server: _Server) -> None:
        """Find out whether a server is down, unless this is being done."""
        if server.watching is None or server.watching.done():
            server.watching = self._spawn(self._watch(server))

    async def _probe(self, server: _Server) -> None:
        server.findings = await probe(server.model, server.role, self._seconds)
        level = worst(server.findings)
        text = f"model {server.label} ({server.role}): {in_one_line(server.findings)}"
        log.log(_LEVELS[level], text, extra={"model": server.label, "probe": level})
        if any(one.level == "error" and one.check in ("reachable", "answer") for one in server.findings):
            self.suspect(server)

    async def _watch(self, server: _Server) -> None:
        breaker, pause = server.breaker, FIRST_PAUSE
        while (failure := await trial(server.model, self._seconds)) is not None and breaker.enabled:
            if breaker.failure is None:
                log.error(
                    f"model {server.label} is down: no request waits for it until it answers a trial request",
                    extra={"model": server.label, "error": str(failure)},
                )
            breaker.open(failure)
            await asyncio.sleep(pause)
            pause = min(2.0 * pause, LONGEST_PAUSE)
        was_open = breaker.failure is not None
        breaker.close()
        if was_open:
            log.warning(f"model {server.label} answers again", extra={"model": server.label})
            await self._probe(server)

    def _spawn(self, work: Any) -> "asyncio.Task[None]":
        task: asyncio.Task[None] = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a probe of a model failed", exc_info=error)


@dataclass(frozen=True, slots=True)
class _Suspicion:
    """Called by a breaker."""

    monitor: HealthMonitor
    server: _Server

    def __call__(self) -> None:
        self.monitor.suspect(self.server)


def _state(down: bool) -> str:
    return "open" if down else "closed"


def _as_json(servers: Sequence[_Server]) -> list[dict[str, Any]]:
    """The findings of all servers; those of several servers say which one they are about."""
    several = len(servers) > 1
    return [
        {**one.to_json(), **({"deployment": server.label} if several else {})}
        for server in servers
        for one in server.findings
    ]
