"""Requests a second of 1, 2 and 4 gateways that share a game through Redis, beside one process on SQLite.

The load generator and the model server are taken out of the account as in ``benchmarks.workers``: from the processor
time of the gateways and of Redis follows the rate at which they alone would fill the cores. All gateways have equally
many requests in flight, as behind the load balancer of ``deploy/``: the one that folds answers fewer. Figures are
medians over turns, in each of which every group is measured: the speed of a machine changes while it is measured. The
calls of Redis and the time they take there are what Redis itself has counted (``INFO commandstats``).
"""

import argparse
import json
import re
import socket
import statistics
import sys
import tempfile
import urllib.request
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from tqdm import tqdm

from benchmarks.load import send_to_all
from benchmarks.processes import Server, gateway, upstream
from benchmarks.redis_cost import redis, shared_gateway

GATEWAYS = (1, 2, 4)
TURNS, AT_ONCE, CORES = 9, 64, 2
# Requests a second of two gateways on two cores, over those of one process.
GOAL = 1.7
# Operations on the path of a request: its arrival and its decision.
MOST_OPERATIONS = 2


@dataclass
class Group:
    """Gateways that share a game, or one alone.

    Parameters
    ----------
    name: what they are.
    gateways: their processes.
    store: the Redis server; none with SQLite.
    """

    name: str
    gateways: Sequence[Server]
    store: Server | None = None
    rates: list[float] = field(default_factory=list)
    turns: list[dict[int, float]] = field(default_factory=list)
    sent: int = 0
    scripts: tuple[int, int] = (0, 0)
    batches: int = 0

    @property
    def processes(self) -> list[Server]:
        """Everything whose processor time counts."""
        return [*self.gateways, *([] if self.store is None else [self.store])]

    def load(self, requests: int) -> float:
        """Send requests to all gateways at once; the seconds it took."""
        return send_to_all([one.port for one in self.gateways], requests, AT_ONCE, stream=False).seconds

    def measure(self, requests: int) -> None:
        """Send requests, and add up what they cost."""
        self.load(requests // 10)
        # Processor time last: what the questions before it cost is not the cost of requests.
        batches, scripts, before = self._batches(), self._scripts(), self._cpu()
        self.rates.append(requests / self.load(requests))
        self.turns.append({port: 1e6 * (cpu - before[port]) / requests for port, cpu in self._cpu().items()})
        self.batches += self._batches() - batches
        calls, microseconds = self._scripts()
        self.scripts = self.scripts[0] + calls - scripts[0], self.scripts[1] + microseconds - scripts[1]
        self.sent += requests

    def alone(self) -> list[float]:
        """Requests a second if it had the cores for itself, in each turn."""
        return [min(self.cores * 1e6 / sum(each.values()), 1e6 / max(each.values())) for each in self.turns]

    @property
    def cores(self) -> int:
        """The cores that it can use."""
        return 1 if self.store is None else CORES

    def _cpu(self) -> dict[int, float]:
        return {one.port: one.cpu() for one in self.processes}

    def _batches(self) -> int:
        """Calls of Redis for requests and their outcomes, as the gateways count them."""
        if self.store is None:
            return 0
        found = 0
        for one in self.gateways:
            with urllib.request.urlopen(f"http://127.0.0.1:{one.port}/v1/status", timeout=10) as response:
                (game,) = json.load(response)["routes"]["m"]
            found += int(game["shared"]["calls"])
        return found

    def _scripts(self) -> tuple[int, int]:
        """How many scripts Redis has run, and the microseconds they took there."""
        if self.store is None:
            return 0, 0
        with socket.create_connection(("127.0.0.1", self.store.port), 10) as asking:
            asking.sendall(b"INFO commandstats\r\n")
            text = b""
            while not text.endswith(b"\r\n\r\n"):
                text += asking.recv(1 << 16)
        found = re.findall(rb"cmdstat_eval(?:sha)?:calls=(\d+),usec=(\d+)", text)
        return sum(int(calls) for calls, _ in found), sum(int(spent) for _, spent in found)


def shown(group: Group, one: Group) -> str:
    """A line of figures."""
    total, busiest = (statistics.median(of(each.values()) for each in group.turns) for of in (sum, max))
    line = (
        f"{group.name:22} {statistics.median(group.rates):6.0f} /s here, {total:5.0f} µs of processor per "
        f"request (busiest process {busiest:4.0f}), {statistics.median(group.alone()):6.0f} /s alone on {group.cores} "
        f"cores: {times(group, one):4.2f} times one process"
    )
    if group.store is None:
        return line
    calls, spent = group.scripts
    redis_time = statistics.median(each[group.store.port] for each in group.turns)
    return (
        f"{line}; Redis {redis_time:.0f} µs; {group.batches / group.sent:.2f} calls per request for "
        f"arrivals, decisions and outcomes; with folding {calls / group.sent:.2f} scripts per request, "
        f"{spent / calls:.0f} µs each"
    )


def times(group: Group, one: Group) -> float:
    """How many times as many requests a second as one process: the median over turns."""
    return statistics.median(many / single for many, single in zip(group.alone(), one.alone(), strict=True))


def main() -> int:
    """Measure, and print the results; 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=13_500, help="requests to each group (default: 13500)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        base = f"http://127.0.0.1:{stack.enter_context(upstream()).port}/v1"
        home = Path(name)
        groups = [Group("one process, SQLite", [stack.enter_context(gateway("SQLite", base, home, "portfolio"))])]
        for count in GATEWAYS:
            (directory := home / str(count)).mkdir()
            server = stack.enter_context(redis(directory))
            servers = []
            for at in range(count):
                (own := directory / str(at)).mkdir()
                servers.append(stack.enter_context(shared_gateway(own, base, server.port, f"{count}: {at}")))
            groups.append(Group(f"{count} on Redis", servers, server))
        for group in groups:
            group.load(1000)  # until drafts are kept
        for _ in tqdm(range(TURNS), desc="gateways", file=sys.stderr):
            for group in groups:
                group.measure(max(10 * AT_ONCE, options.requests // TURNS))
    for group in groups:
        print(shown(group, groups[0]))
    return int(goals_missed(groups) > 0)


def goals_missed(groups: Sequence[Group]) -> int:
    """Print which goals are met; how many are missed.

    Parameters
    ----------
    groups: what was measured; the first is one process on SQLite.
    """
    missed = 0
    for group in groups:
        if len(group.gateways) == CORES:
            found = times(group, groups[0])
            missed += found < GOAL
            print(f"{'met   ' if found >= GOAL else 'MISSED'} {found:8.3g} of at least {GOAL}")
    too_many = any(group.batches > MOST_OPERATIONS * group.sent for group in groups)
    print(f"at most {MOST_OPERATIONS} operations of Redis per request: {'MISSED' if too_many else 'met'}")
    return missed + too_many


if __name__ == "__main__":
    sys.exit(main())
