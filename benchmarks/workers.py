"""Requests a second of one process and of ``bpac serve --workers N``, with the load generator taken out of the account.

Here the load generator and the model server run on the same cores as the gateway, so the rate that is measured says as
much about them. Processor time does not depend on who else runs. From it follows the rate at which the gateway alone
would fill the cores: all its processes together have the cores, and no process can have more than one of them. So it is
the smaller of  cores / (time of all processes per request)  and  1 / (time of the busiest process per request).
"""

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil  # type: ignore[import-untyped]
from tqdm import tqdm

from benchmarks.load import send
from benchmarks.processes import Server, gateway, upstream

POLICIES = {"never": "drafts kept", "always": "experts called"}
WORKERS = (0, 1, 2, 4)
TURNS, AT_ONCE = 8, 64
# Requests a second with two fronts on two cores, over those of one process.
GOAL, CORES = 1.7, 2


@dataclass(frozen=True, slots=True)
class Rate:
    """What a gateway can do.

    Parameters
    ----------
    requests: what its requests are.
    workers: the number of fronts; 0 for one process that does everything.
    measured: requests a second that were answered here, in the median.
    cpu: microseconds of processor time per request, of all its processes.
    owner: of it, those of the owner.
    busiest: those of its busiest process.
    alone: requests a second if the gateway had the cores for itself.
    megabytes: memory of all its processes, shared pages counted in each of them.
    """

    requests: str
    workers: int
    measured: float
    cpu: float
    owner: float
    busiest: float
    alone: float
    megabytes: float


def processes(server: Server) -> list[psutil.Process]:
    """The processes of a gateway."""
    return [server.process, *server.process.children(recursive=True)]


def seconds(server: Server) -> dict[int, float]:
    """Processor time of each process so far."""
    return {one.pid: sum(one.cpu_times()[:2]) for one in processes(server)}


def measured(servers: Sequence[tuple[str, int, Server]], requests: int) -> list[Rate]:
    """The rates of all gateways, which take turns so that what else the machine does falls on all of them."""
    rates: dict[str, list[float]] = {server.name: [] for *_, server in servers}
    used: dict[str, dict[int, float]] = {server.name: {} for *_, server in servers}
    share = max(AT_ONCE, requests // TURNS)
    for _ in tqdm(range(TURNS), desc="workers", file=sys.stderr):
        for *_, server in servers:
            send(server.port, max(AT_ONCE, share // 10), AT_ONCE, stream=False)
            before = seconds(server)
            load = send(server.port, share, AT_ONCE, stream=False)
            rates[server.name].append(share / load.seconds)
            for pid, now in seconds(server).items():
                spent = now - before.get(pid, 0.0)
                used[server.name][pid] = used[server.name].get(pid, 0.0) + spent
    found = []
    for kind, workers, server in servers:
        each = {pid: 1e6 * spent / (TURNS * share) for pid, spent in used[server.name].items()}
        owner = sum(each[one.pid] for one in processes(server) if "owner" in one.cmdline()[3:4])
        total, busiest = sum(each.values()), max(each.values())
        cores = CORES if workers else 1
        alone = min(cores * 1e6 / total, 1e6 / busiest)
        memory = sum(one.memory_info().rss for one in processes(server)) / 2**20
        found.append(Rate(kind, workers, statistics.median(rates[server.name]), total, owner, busiest, alone, memory))
    return found


def main() -> int:
    """Measure, and print the results beside the goal; 1 if one is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--requests", type=int, default=12_000, help="requests to each gateway (default: 12000)")
    add("--json", type=Path, metavar="FILE", help="file for all figures, as JSON")
    options = parser.parse_args()
    rates: list[Rate] = []
    for policy, kind in POLICIES.items():
        with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
            direct = stack.enter_context(upstream())
            base = f"http://127.0.0.1:{direct.port}/v1"
            servers = []
            for workers in WORKERS:
                home = Path(name) / str(workers)
                home.mkdir()
                opened = gateway(f"{kind}, {workers} workers", base, home, policy, workers=workers)
                servers.append((kind, workers, stack.enter_context(opened)))
            rates += measured(servers, options.requests)
    missed = 0
    for rate in rates:
        what = f"{rate.workers} front{'s' * (rate.workers > 1)} and an owner" if rate.workers else "one process"
        one = next(each.alone for each in rates if each.requests == rate.requests and not each.workers)
        print(
            f"{rate.requests:14} {what:20} {rate.measured:6.0f} /s here, {rate.cpu:5.0f} µs of processor per request "
            f"(owner {rate.owner:4.0f}, busiest {rate.busiest:4.0f}), {rate.alone:6.0f} /s alone on "
            f"{f'{CORES} cores' if rate.workers else 'one core'}: {rate.alone / one:4.2f} times one process, "
            f"{rate.megabytes:.0f} MB"
        )
        if rate.workers == CORES:
            missed += rate.alone < GOAL * one
            print(f"{'met   ' if rate.alone >= GOAL * one else 'MISSED'} {rate.alone / one:8.3g} of at least {GOAL}")
    if options.json:
        options.json.write_text(json.dumps([asdict(rate) for rate in rates], indent=1) + "\n")
    print(f"{missed} goals missed")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
