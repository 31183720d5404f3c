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
import time
from collections.abc import Container, Coroutine, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from bpac.gateway.health.breaker import Breaker, nothing
from bpac.gateway.health.findings import Checked, in_one_line, worst
from bpac.gateway.health.probe import LONGEST_TRIAL, Probed, probe, trial
from bpac.gateway.health.roles import ModelRole

log = logging.getLogger("bpac.gateway")

# Seconds that the start of the gateway waits for probes.
WAIT = 1.0
# Seconds before the second trial, doubled before each further one up to the longest pause.
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
# Checks without which a model cannot answer.
ANSWERING = frozenset({"reachable", "key", "model", "answer"})
_LEVELS = {"ok": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


@dataclass(slots=True, eq=False)
class WatchedServer:
    """One server of a model, and what is known about it.

    Parameters
    ----------
    name: the name of the model.
    label: the name of this server, which is that of the model if it has only one.
    model: sends the probes and trials; it records failures without logging them, because the monitor does.
    breaker: the circuit breaker of requests to this server.
    role: what the model is used for.
    findings: of the latest probe.
    probed_as: what the model was used for then; none if there was none.
    probed: when that probe was, in seconds since 1970; none if there was none.
    watching: the task that finds out whether it is down; none if there was none yet.
    tasks: its probes and trials that are under way.
    """

    name: str
    label: str
    model: Probed
    breaker: Breaker
    role: ModelRole = field(default_factory=lambda: ModelRole({}))
    findings: list[Checked] = field(default_factory=list)
    probed_as: ModelRole | None = None
    probed: float | None = None
    watching: "asyncio.Task[None] | None" = None
    tasks: "set[asyncio.Task[None]]" = field(default_factory=set)


class HealthMonitor:
    """Probes models, and opens and closes their circuit breakers."""

    def __init__(self) -> None:
        self._seconds = LONGEST_TRIAL
        self._servers: list[WatchedServer] = []

    @property
    def servers(self) -> tuple[WatchedServer, ...]:
        """The servers that are watched."""
        return tuple(self._servers)

    def watch(self, servers: Sequence[WatchedServer], seconds: float) -> None:
        """Watch these servers and no others; what is known about those that were watched before stays known.

        Parameters
        ----------
        servers: the servers.
        seconds: how long a probe or a trial that begins from now on may take.
        """
        self._seconds = seconds
        before, self._servers = self._servers, list(servers)
        for server in before:
            if server not in self._servers:
                # Requests that began before a reload may still fail there, but its trials would never be ended.
                server.breaker.suspected = nothing
                _cancel(server)
        for server in self._servers:
            server.breaker.suspected = partial(self.suspect, server)

    async def start(self) -> None:
        """Probe all servers that have not been probed for their use, and wait a moment; slower results come later."""
        new = [server for server in self._servers if server.probed_as != server.role and not server.tasks]
        probes = [self._spawn(server, self._probe(server)) for server in new]
        if probes:
            await asyncio.wait(probes, timeout=WAIT)

    async def stop(self) -> None:
        """End all probes and trials."""
        tasks = [task for server in self._servers for task in server.tasks]
        for server in self._servers:
            _cancel(server)
        await asyncio.gather(*tasks, return_exceptions=True)

    def is_down(self, name: str) -> bool:
        """Whether all servers of a model are known to be down."""
        servers = self._servers_of(name)
        return bool(servers) and all(server.breaker.failure is not None for server in servers)

    def report(self, name: str) -> dict[str, Any]:
        """What is known about a model beside its failures, as JSON values: its breaker and its latest probe."""
        servers = self._servers_of(name)
        report: dict[str, Any] = {"breaker": _state(self.is_down(name)), "probe": _as_json(servers)}
        if len(servers) > 1:
            report["deployments"] = {one.label: _state(one.breaker.failure is not None) for one in servers}
        return report

    def summary(self) -> dict[str, dict[str, Any]]:
        """Of each model whether it is up, and the worst level of its latest probe; for callers without a key."""
        found: dict[str, list[Checked]] = {}
        for server in self._servers:
            found.setdefault(server.name, []).extend(server.findings)
        return {name: {"up": not self.is_down(name), "probe": worst(findings)} for name, findings in found.items()}

    def troubles(self, failing: Container[str] = ()) -> list[dict[str, Any]]:
        """What the latest probes found wrong, as JSON values with the keys of the dashboard's troubles.

        Parameters
        ----------
        failing: models that are known to fail, so that it is not said again that they do not answer (default: none).
        """
        return [
            {"what": f"model {server.label}: {one.message}", "since": server.probed, "count": 1, "remedy": one.remedy}
            for server in self._servers
            for one in server.findings
            if one.level != "ok" and not (server.label in failing and one.check in ANSWERING)
        ]

    def suspect(self, server: WatchedServer) -> None:
        """Find out whether a server is down, unless this is being done."""
        if server.watching is None or server.watching.done():
            server.watching = self._spawn(server, self._watch(server))

    def _servers_of(self, name: str) -> list[WatchedServer]:
        return [server for server in self._servers if server.name == name]

    async def _probe(self, server: WatchedServer) -> None:
        server.probed_as = server.role
        server.findings = await probe(server.model, server.role, self._seconds)
        server.probed = round(time.time(), 3)
        level = worst(server.findings)
        text = f"model {server.label} ({server.role}): {in_one_line(server.findings)}"
        log.log(_LEVELS[level], text, extra={"model": server.label, "probe": level})
        if any(one.level == "error" and one.check in ("reachable", "answer") for one in server.findings):
            self.suspect(server)

    async def _watch(self, server: WatchedServer) -> None:
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

    def _spawn(self, server: WatchedServer, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.create_task(work)
        server.tasks.add(task)
        task.add_done_callback(partial(_ended, server))
        return task


def _cancel(server: WatchedServer) -> None:
    for task in list(server.tasks):
        task.cancel()


def _ended(server: WatchedServer, task: "asyncio.Task[None]") -> None:
    server.tasks.discard(task)
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("a probe of a model failed", exc_info=error)


def _state(down: bool) -> str:
    return "open" if down else "closed"


def _as_json(servers: Sequence[WatchedServer]) -> list[dict[str, Any]]:
    """The findings of all servers; those of several servers say which one they are about."""
    several = len(servers) > 1
    return [
        {**one.to_json(), **({"deployment": server.label} if several else {})}
        for server in servers
        for one in server.findings
    ]
