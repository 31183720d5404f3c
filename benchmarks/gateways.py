"""Requests a second of 1, 2 and 4 gateways that share a game through Redis, beside one process on SQLite.

The load generator and the model server are taken out of the account as in ``benchmarks.workers``: from the processor
time of the gateways and of Redis follows the rate at which they alone would fill the cores. The calls of Redis and the
time they take there are what Redis itself has counted (``INFO commandstats``).
"""

import argparse
import json
import re
import socket
import statistics
import sys
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from tqdm import tqdm

from benchmarks.load import send
from benchmarks.processes import Server, gateway, upstream
from benchmarks.redis_cost import redis, shared_gateway

GATEWAYS = (1, 2, 4)
TURNS, AT_ONCE, CORES = 6, 64, 2
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
    used: dict[int, float] = field(default_factory=dict)
    sent: int = 0
    scripts: tuple[int, int] = (0, 0)
    batches: int = 0

    @property
    def processes(self) -> list[Server]:
        """Everything whose processor time counts."""
        return [*self.gateways, *([] if self.store is None else [self.store])]

    def load(self, requests: int) -> float:
        """Send requests to all gateways at once; the seconds it took."""
        share = len(self.gateways)
        began = time.perf_counter()
        with ThreadPoolExecutor(share) as pool:
            list(pool.map(lambda one: send(one.port, requests // share, AT_ONCE // share, stream=False), self.gateways))
        return time.perf_counter() - began

    def measure(self, requests: int) -> None:
        """Send requests, and add up what they cost."""
        self.load(requests // 10)
        # Processor time last: what the questions before it cost is not the cost of requests.
        batches, scripts, before = self._batches(), self._scripts(), self._cpu()
        self.rates.append(requests / self.load(requests))
        for port, cpu in self._cpu().items():
            self.used[port] = self.used.get(port, 0.0) + cpu - before[port]
        self.batches += self._batches() - batches
        calls, microseconds = self._scripts()
        self.scripts = self.scripts[0] + calls - scripts[0], self.scripts[1] + microseconds - scripts[1]
        self.sent += requests

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
    each = {port: 1e6 * spent / group.sent for port, spent in group.used.items()}
    line = (
        f"{group.name:22} {statistics.median(group.rates):6.0f} /s here, {sum(each.values()):5.0f} µs of processor per "
        f"request (busiest process {max(each.values()):4.0f}), {alone(group):6.0f} /s alone on {cores(group)} cores: "
        f"{alone(group) / alone(one):4.2f} times one process"
    )
    if group.store is None:
        return line
    calls, spent = group.scripts
    return (
        f"{line}; Redis {each[group.store.port]:.0f} µs; {group.batches / group.sent:.2f} calls per request for "
        f"arrivals, decisions and outcomes; with folding {calls / group.sent:.2f} scripts per request, "
        f"{spent / calls:.0f} µs each"
    )


def cores(group: Group) -> int:
    """The cores that a group can use."""
    return 1 if group.store is None else CORES


def alone(group: Group) -> float:
    """Requests a second if a group had the cores for itself."""
    each = [1e6 * spent / group.sent for spent in group.used.values()]
    return min(cores(group) * 1e6 / sum(each), 1e6 / max(each))


def main() -> int:
    """Measure, and print the results; 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=9_000, help="requests to each group (default: 9000)")
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
            times = alone(group) / alone(groups[0])
            missed += times < GOAL
            print(f"{'met   ' if times >= GOAL else 'MISSED'} {times:8.3g} of at least {GOAL}")
    too_many = any(group.batches > MOST_OPERATIONS * group.sent for group in groups)
    print(f"at most {MOST_OPERATIONS} operations of Redis per request: {'MISSED' if too_many else 'met'}")
    return missed + too_many


if __name__ == "__main__":
    sys.exit(main())
