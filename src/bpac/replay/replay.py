"""Replays: a table through a router, many times over, and the paper's three metrics."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import joblib
import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from bpac.arguments import whole
from bpac.replay.simulation.delays import Delay
from bpac.replay.simulation.drafting import Drafting
from bpac.replay.simulation.events import Drafted, Event, delayed
from bpac.replay.simulation.feed import Feed
from bpac.replay.simulation.load import under_load
from bpac.replay.tables.streams import shuffled
from bpac.replay.tables.table import Table
from bpac.routing.coins import Coins, ListedCoins, SeededCoins
from bpac.routing.decision import Decision
from bpac.routing.policies import ORACLE, Policy
from bpac.routing.router import Router

Vector = NDArray[np.float64]
# Below so many rounds in all, starting worker processes costs more than it saves.
WORTH_WORKERS = 2_000_000
ONE_AT_A_TIME = Drafting()


@dataclass(frozen=True, slots=True)
class Run:
    """What one replay came to (MATH section 9).

    Parameters
    ----------
    expert_call_rate: share of rounds in which the expert was called (ECP).
    empirical_risk: average loss of what was served (ER).
    token_ratio: tokens spent against always asking the expert (TP); none without tokens.
    threshold: the last threshold.
    seconds: time spent in the router.
    """

    expert_call_rate: float
    empirical_risk: float
    token_ratio: float | None
    threshold: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Path:
    """What happened at each step of a replay.

    Parameters
    ----------
    call_expert, serve_draft: as decided.
    threshold: the last threshold.
    seconds: time spent in the router.
    decisions: the decisions themselves, if they were asked for.
    """

    call_expert: NDArray[np.bool_]
    serve_draft: NDArray[np.bool_]
    threshold: float
    seconds: float
    decisions: tuple[Decision, ...] = ()


def oracle_policy(table: Table, epsilon: float) -> Policy:
    """The policy that knows the largest threshold with a true risk of at most ε, and also explores 5 %."""
    return replace(ORACLE, threshold=_oracle_threshold(table, epsilon))


def oracle_expert_call_rate(table: Table, epsilon: float) -> float:
    """How often the oracle calls the expert."""
    accepted = float(np.mean(table.uncertainty < _oracle_threshold(table, epsilon)))
    return 1.0 - accepted * (1.0 - ORACLE.explores)


def _oracle_threshold(table: Table, epsilon: float) -> float:
    order = np.argsort(table.uncertainty, kind="stable")
    scores = table.uncertainty[order]
    # Risk of the threshold that lies at each row's score: all rows strictly below it are accepted.
    below = np.searchsorted(scores, scores, side="left")
    sums = np.concatenate(([0.0], np.cumsum(table.loss[order])))
    kept = 1.0 - ORACLE.explores
    if kept * sums[-1] <= epsilon * len(table):
        return 1.0
    safe = scores[kept * sums[below] <= epsilon * len(table)]
    return float(safe[-1])


def play(
    table: Table,
    router: Router,
    delay: Delay,
    rng: np.random.Generator,
    *,
    drafting: Drafting = ONE_AT_A_TIME,
    trace: bool = False,
) -> tuple[Table, Path]:
    """Send a table through a router; return it in the order in which queries were decided, and what happened.

    Parameters
    ----------
    table: the recorded answers, in the order in which their queries arrive.
    router: a fresh router.
    delay: when outcomes arrive.
    rng: random source of the delays.
    drafting: how many drafts are under way at once, and how long they take.
    trace: whether to keep every decision.
    """
    # Flags rather than decisions: thousands of live objects would keep the garbage collector busy.
    calls, served = bytearray(), bytearray()
    decisions: list[Decision] = []
    rounds = zip(table.uncertainty.tolist(), table.loss.tolist(), strict=True)
    order: list[int] = []
    loaded = drafting.in_flight > 1
    plain = delay == Delay() and not loaded and not trace and router.settings.explore == "serve"
    decide, observe, called = router.decide, router.observe, calls.append
    start = time.perf_counter()
    if plain:  # by far the most common, and the same without the questions
        for uncertainty, loss in rounds:
            decision = decide(uncertainty)
            if decision.call_expert:
                observe(decision, loss)
                called(1)
            else:
                called(0)
    else:
        feed = Feed(router, tickets=loaded and drafting.tickets)
        events: Iterator[Event] = delayed(rounds, delay, rng)
        if loaded:
            events = under_load(rounds, drafting, delay, rng)
        for event in events:
            taken = feed.take(event)
            if taken is None or not isinstance(event, Drafted):
                continue
            called(taken.call_expert)
            served.append(taken.serve_draft)
            order.append(event.query - 1)
            if trace:
                decisions.append(taken)
    seconds = time.perf_counter() - start
    call_expert = np.frombuffer(calls, dtype=np.bool_)
    serve_draft = ~call_expert if plain else np.frombuffer(served, dtype=np.bool_)
    path = Path(call_expert, serve_draft, router.threshold, seconds, tuple(decisions))
    return (table.take(np.array(order)) if loaded else table), path


def metrics(table: Table, path: Path) -> Run:
    """The three metrics of a replay."""
    tokens = None
    if table.draft_tokens is not None and table.expert_tokens is not None and table.expert_tokens.sum() > 0:
        spent = table.draft_tokens.sum() + table.expert_tokens[path.call_expert].sum()
        tokens = float(spent / table.expert_tokens.sum())
    return Run(
        expert_call_rate=float(path.call_expert.mean()),
        empirical_risk=float((table.loss * path.serve_draft).mean()),
        token_ratio=tokens,
        threshold=path.threshold,
        seconds=path.seconds,
    )


def metric_paths(table: Table, path: Path) -> Vector:
    """ER, ECP, TP and threshold after every step of a traced replay, one row each; TP is NaN without tokens."""
    steps = np.arange(1, len(table) + 1)
    tokens = np.full(len(table), np.nan)
    if table.draft_tokens is not None and table.expert_tokens is not None:
        spent = table.draft_tokens + np.where(path.call_expert, table.expert_tokens, 0.0)
        tokens = np.cumsum(spent) / np.cumsum(table.expert_tokens)
    thresholds = np.array([decision.threshold for decision in path.decisions])
    risk = np.cumsum(table.loss * path.serve_draft) / steps
    return np.array([risk, np.cumsum(path.call_expert) / steps, tokens, thresholds])


@dataclass(frozen=True, slots=True)
class Replay:
    """A table, a router and how often to bring them together.

    Parameters
    ----------
    table: the recorded answers.
    router: makes a fresh router, given the coins.
    runs: how many replays.
    seed: of shuffles, coins and delays.
    order: ``shuffled`` anew for each run, or as ``given``.
    delay: when outcomes arrive.
    drafting: how many drafts are under way at once, and how long they take.
    """

    table: Table
    router: Callable[[Coins], Router]
    runs: int = 1
    seed: int = 0
    order: Literal["shuffled", "given"] = "shuffled"
    delay: Delay = Delay()
    drafting: Drafting = ONE_AT_A_TIME

    def __post_init__(self) -> None:
        whole(self.runs, "runs", 1)
        whole(self.seed, "seed", 0)

    def one(self, run: int, *, trace: bool = False) -> tuple[Table, Path]:
        """The replay of that number, always the same: its table in the order of decisions, and its path."""
        rng = np.random.default_rng([self.seed, run])
        table = self.table
        coins: Coins = SeededCoins(int(rng.integers(1 << 63)))
        if self.order == "shuffled":
            table = shuffled(table, rng)
        elif self.runs == 1 and table.coin is not None:
            coins = ListedCoins(table.coin.tolist())
        return play(table, self.router(coins), self.delay, rng, drafting=self.drafting, trace=trace)

    def all(self, *, workers: int | None = None) -> list[Run]:
        """All replays, with a progress bar on standard error, on all cores where it pays."""
        if workers is None:
            workers = -1 if self.runs * len(self.table) > WORTH_WORKERS else 1
        parallel = joblib.Parallel(n_jobs=workers, return_as="generator")
        results: Any = parallel(joblib.delayed(_metrics_of)(self, run) for run in range(self.runs))
        return list(tqdm(results, total=self.runs, desc="replays", unit="run", leave=False, mininterval=0.5))


def _metrics_of(replay: Replay, run: int) -> Run:
    return metrics(*replay.one(run))
