"""Replays: the rows of a table sent through a router, many times over.

1. A replay reads the table in its own order or shuffled, with a random seed of its own.
2. Each row is a query: the router sees its uncertainty and decides whether to call the expert.
3. Where the expert is called, the row's loss is reported to the router, at once or after a delay.
4. What was decided at each step is kept, and the metrics are computed from it and from all losses of the table, which
   the router never sees.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any, Literal

import joblib
import numpy as np
from tqdm import tqdm

from bpac.arguments import whole
from bpac.replay.metrics import ReplayMetrics, ReplayPath, replay_metrics
from bpac.replay.simulation.delays import Delay
from bpac.replay.simulation.drafting import Drafting
from bpac.replay.simulation.events import Arrived, Drafted, Event, delayed
from bpac.replay.simulation.expert_hours import ExpertHours
from bpac.replay.simulation.gateway import SimulatedGateway
from bpac.replay.simulation.load import under_load
from bpac.replay.tables.table import Table, shuffled
from bpac.routing.coins import Coins, ListedCoins, SeededCoins
from bpac.routing.decision import Decision
from bpac.routing.learning.features import Features
from bpac.routing.router import Router

# For fewer rounds in total, starting worker processes takes longer than they save.
WORTH_WORKERS = 2_000_000
ONE_AT_A_TIME = Drafting()


def send_table(
    table: Table,
    router: Router,
    delay: Delay,
    rng: np.random.Generator,
    *,
    drafting: Drafting = ONE_AT_A_TIME,
    hours: ExpertHours | None = None,
    trace: bool = False,
) -> tuple[Table, ReplayPath]:
    """Send a table through a router; return the table in the order of decisions, and what happened at each step.

    Parameters
    ----------
    table: the recorded answers, in the order in which their queries arrive.
    router: a fresh router.
    delay: when outcomes arrive.
    rng: random source of the delays.
    drafting: how many drafts are in flight at once, and how long they take.
    hours: when the expert is cheap or busy (default: never).
    trace: whether to record every decision.
    """
    # Flags and not decisions: the garbage collector would visit thousands of live objects again and again.
    calls, served = bytearray(), bytearray()
    decisions: list[Decision] = []
    rounds = zip(table.uncertainty.tolist(), table.loss.tolist(), strict=True)
    order: list[int] = []
    loaded = drafting.in_flight > 1
    at_once = delay == Delay() and not loaded and hours is None
    learned = router.settings.policy.learned
    features = rows_of_features(table, learned.features) if learned is not None else None
    plain = at_once and not trace and router.settings.explore == "serve" and features is None
    decide, observe, called = router.decide, router.observe, calls.append
    start = time.perf_counter()
    if plain:  # the most common case, without the cost of features, flags and events
        for uncertainty, loss in rounds:
            decision = decide(uncertainty)
            if decision.call_expert:
                observe(decision, loss)
                called(1)
            else:
                called(0)
    elif at_once:
        for decision in _decided_at_once(router, rounds, features):
            called(decision.call_expert)
            served.append(decision.serve_draft)
            if trace:
                decisions.append(decision)
    else:
        gateway = SimulatedGateway(router, tickets=loaded and drafting.tickets, features=features)
        events: Iterator[Event] = under_load(rounds, drafting, delay, rng) if loaded else delayed(rounds, delay, rng)
        if hours is not None:
            events = hours.told(router, events, Arrived if loaded else Drafted)
        for event in events:
            handled = gateway.handle(event)
            if handled is None or not isinstance(event, Drafted):
                continue
            called(handled.call_expert)
            served.append(handled.serve_draft)
            order.append(event.query - 1)
            if trace:
                decisions.append(handled)
    seconds = time.perf_counter() - start
    call_expert = np.frombuffer(calls, dtype=np.bool_)
    serve_draft = ~call_expert if plain else np.frombuffer(served, dtype=np.bool_)
    prices = np.array([hours.price_of(row + 1) for row in order]) if hours is not None else None
    path = ReplayPath(call_expert, serve_draft, router.threshold, seconds, tuple(decisions), prices)
    return (table.take(np.array(order)) if loaded else table), path


def _decided_at_once(
    router: Router, rounds: Iterable[tuple[float, float]], features: Iterable[Features] | None
) -> Iterator[Decision]:
    """Decide one query after the other, and report each outcome at once."""
    given: Iterable[Features | None] = repeat(None) if features is None else features
    for (uncertainty, loss), known in zip(rounds, given, strict=False):
        decision = router.decide(uncertainty, features=known)
        if decision.call_expert:
            router.observe(decision, loss)
        yield decision


def rows_of_features(table: Table, names: Sequence[str]) -> list[tuple[float | str | None, ...]]:
    """The features of each row, in the order of these names; those that the table lacks are not known."""
    unknown = [None] * len(table)
    return list(zip(*(table.features.get(name, unknown) for name in names), strict=True))


@dataclass(frozen=True, slots=True)
class Replay:
    """Replays of a table through fresh routers.

    Parameters
    ----------
    table: the recorded answers.
    make_router: makes a fresh router, given its random source.
    runs: number of replays.
    seed: random seed of the shuffles, coins and delays.
    order: ``shuffled`` for each run, or as ``given``.
    delay: when outcomes arrive.
    drafting: how many drafts are in flight at once, and how long they take.
    hours: when the expert is cheap or busy (default: never); every run begins at another time of the day.
    """

    table: Table
    make_router: Callable[[Coins], Router]
    runs: int = 1
    seed: int = 0
    order: Literal["shuffled", "given"] = "shuffled"
    delay: Delay = Delay()
    drafting: Drafting = ONE_AT_A_TIME
    hours: ExpertHours | None = None

    def __post_init__(self) -> None:
        whole(self.runs, "runs", 1)
        whole(self.seed, "seed", 0)

    def run(self, number: int, *, trace: bool = False) -> tuple[Table, ReplayPath]:
        """The run of that number: its table in the order of decisions, and its path. Equal numbers give equal runs."""
        rng = np.random.default_rng([self.seed, number])
        table = self.table
        coins: Coins = SeededCoins(int(rng.integers(1 << 63)))
        if self.order == "shuffled":
            table = shuffled(table, rng)
        elif self.runs == 1 and table.coin is not None:
            coins = ListedCoins(table.coin.tolist())
        hours = self.hours.of_run(self.seed + number) if self.hours is not None else None
        router = self.make_router(coins)
        return send_table(table, router, self.delay, rng, drafting=self.drafting, hours=hours, trace=trace)

    def run_all(self, *, workers: int | None = None) -> list[ReplayMetrics]:
        """The metrics of all runs, with a progress bar on standard error.

        Parameters
        ----------
        workers: number of processes (default: one per core for long replays, else one).
        """
        if workers is None:
            workers = -1 if self.runs * len(self.table) > WORTH_WORKERS else 1
        parallel = joblib.Parallel(n_jobs=workers, return_as="generator")
        results: Any = parallel(joblib.delayed(_metrics_of)(self, number) for number in range(self.runs))
        return list(tqdm(results, total=self.runs, desc="replays", unit="run", leave=False, mininterval=0.5))


def _metrics_of(replay: Replay, number: int) -> ReplayMetrics:
    return replay_metrics(*replay.run(number))
