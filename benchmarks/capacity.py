"""What a number of requests per second needs: costs measured on this machine, and the arithmetic from them.

    python -m benchmarks.capacity [--write]

``--write`` puts the tables into docs/capacity.md, between its two marks. A further measurement is one more function in
``MEASUREMENTS``; the arithmetic uses those that it names.
"""

import argparse
import asyncio
import gc
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil  # type: ignore[import-untyped]

from benchmarks.capacity_page import PAGE, arithmetic, measured_table, with_measured
from benchmarks.folding import folding_cost
from benchmarks.gateway import CALLED, KEPT, compare
from benchmarks.processes import gateway, upstream
from benchmarks.redis_cost import redis_cost
from bpac.replay.simulation.laws import PowerLaw
from bpac.routing.journal.entries import Entry
from bpac.routing.router import Router
from bpac.stores import SqliteStore

LAW = PowerLaw(most=0.5, power=1.5)
AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class Measured:
    """A figure.

    Parameters
    ----------
    name: what the arithmetic calls it.
    value, unit: the figure.
    what: what was measured, for readers.
    """

    name: str
    value: float
    unit: str
    what: str


def requests_through_a_gateway() -> Iterator[Measured]:
    """Processor time and memory of one process, for drafts that are kept and for expert calls."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        models = stack.enter_context(upstream())
        base = f"http://127.0.0.1:{models.port}/v1"
        servers = [
            stack.enter_context(gateway(KEPT, base, Path(name), "never")),
            stack.enter_context(gateway(CALLED, base, Path(name), "always")),
        ]
        kept, called = compare(servers, 4000, stream=False, at_once=AT_ONCE)
        streamed, _ = compare(servers, 1500, stream=True, at_once=AT_ONCE)
    yield Measured("kept", kept.cpu, "µs", "processor time per request whose draft is kept, journal included")
    yield Measured("called", called.cpu, "µs", "processor time per request with an expert call and its grading")
    yield Measured("streamed", streamed.cpu, "µs", "processor time per kept draft that is streamed in 100 events")
    yield Measured("memory", kept.megabytes, "MB", "memory of one gateway process")


def rounds_of_a_game() -> Iterator[Measured]:
    """What happens in one order: tickets, decisions, outcomes, hash chain and SQLite; and folding a game in Redis."""
    rounds, notes = 20_000, {"time": 1_700_000_000.0, "draft_tokens": 100}
    uncertainties, losses = (column.tolist() for column in LAW.draw(rounds, np.random.default_rng(1)))
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "bpac.db"
        store = SqliteStore(str(file))
        game = store.open_game("m", "", "{}")

        def write(entry: Entry) -> None:
            store.append(game, entry, notes)

        async def play() -> float:
            router = Router(0.08, seed=1, journal=write)
            started = time.process_time()
            for first in range(0, rounds, AT_ONCE):
                part = range(first, min(first + AT_ONCE, rounds))
                tickets = [router.arrive() for _ in part]
                decisions = [
                    router.decide(uncertainties[at], ticket=one) for at, one in zip(part, tickets, strict=True)
                ]
                await store.durable()
                for at, decision in zip(part, decisions, strict=True):
                    if decision.call_expert:
                        router.observe(decision, losses[at])
            await store.durable()
            return time.process_time() - started

        used = asyncio.run(play())
        store.close()
        size = file.stat().st_size
    yield Measured(
        "round", 1e6 * used / rounds, "µs", "processor time per round of one game in SQLite, all in one order"
    )
    yield Measured(
        "fold",
        folding_cost(),
        "µs",
        "processor time of the folder per round of a game in Redis, from its inbox to what is published",
    )
    yield Measured("bytes", size / rounds, "bytes", "journal in SQLite per round, before it is archived")


def memory_of_games() -> Iterator[Measured]:
    """Memory of a game that has been played."""
    uncertainties, losses = (column.tolist() for column in LAW.draw(2000, np.random.default_rng(2)))
    process = psutil.Process(os.getpid())

    def played() -> Router:
        router = Router(0.08, seed=1)
        for uncertainty, loss in zip(uncertainties, losses, strict=True):
            decision = router.decide(uncertainty)
            if decision.call_expert:
                router.observe(decision, loss)
        return router

    games = [played()]
    gc.collect()
    before = process.memory_info().rss
    games += [played() for _ in range(100)]
    gc.collect()
    per_game = (process.memory_info().rss - before) / (len(games) - 1) / 1024.0
    yield Measured("game", per_game, "KiB", "memory of one game after 2,000 rounds (each segment is a game)")


def requests_with_redis() -> Iterator[Measured]:
    """A gateway whose game is in Redis, with many requests in flight and with one."""
    many, one = redis_cost(), redis_cost(2000, 1)
    yield Measured("more", many.more, "µs", "processor time per request beyond these, if the game is in Redis")
    yield Measured("redis", many.redis, "µs", "processor time of Redis per request, 64 in flight")
    yield Measured("redis_alone", one.redis, "µs", "the same with one request in flight, so that nothing is pipelined")
    yield Measured("redis_bytes", many.bytes, "bytes", "memory of Redis per request, until its entries are archived")


MEASUREMENTS: Sequence[Callable[[], Iterator[Measured]]] = (
    requests_through_a_gateway,
    rounds_of_a_game,
    memory_of_games,
    requests_with_redis,
)


def main() -> None:
    """Measure and print; with ``--write`` also into the page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--write", action="store_true", help=f"write the tables into {PAGE.name}")
    options = parser.parse_args()
    measured = [figure for measure in MEASUREMENTS for figure in measure()]
    values = {figure.name: figure.value for figure in measured}
    rows = [(figure.what, figure.value, figure.unit) for figure in measured]
    text = measured_table(rows) + "\n" + arithmetic(values)
    print(text)
    if options.write:
        PAGE.write_text(with_measured(PAGE.read_text(encoding="utf-8"), text), encoding="utf-8")


if __name__ == "__main__":
    main()
