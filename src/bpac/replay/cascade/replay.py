"""Replays of a cascade: the rows of a table sent through a router, many times over."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from bpac.replay.cascade.in_force import InForce
from bpac.replay.cascade.simulation import SimulatedCascade, asked_stages, timed_rounds
from bpac.replay.cascade.table import CascadeTable
from bpac.replay.router_factory import CascadeRouterFactory
from bpac.replay.simulation.delays import Delay
from bpac.replay.simulation.drafting import Drafting
from bpac.replay.simulation.events import Drafted, Event, delayed
from bpac.replay.simulation.load import under_load
from bpac.routing.cascade.policy import Cascade
from bpac.routing.cascade.rounds import CascadeRound
from bpac.routing.cascade.router import CascadeRouter
from bpac.routing.coins import SeededCoins
from bpac.routing.decision import Decision
from bpac.routing.exploration.schedules import Exploration

AT_ONCE, ONE_AT_A_TIME = Delay(), Drafting()


@dataclass(frozen=True, slots=True)
class CascadeMetrics:
    """The metrics of one replay of a cascade.

    Parameters
    ----------
    cost: price of all calls per request, audits included.
    expert_call_rate: share of requests for which the last model was asked.
    empirical_risk: average loss of the answers that were served.
    answered: share of the requests that each model answered.
    threshold: the threshold at the end.
    rule: name of the rule in force at the end.
    token_ratio: tokens of all calls, relative to always asking the last model only; none if not known.
    seconds: time spent in the router.
    cost_by_tokens: like ``cost``, if each call costs in proportion to its tokens, and on average its model's price;
        none if tokens are not known.
    """

    cost: float
    expert_call_rate: float
    empirical_risk: float
    answered: tuple[float, ...]
    threshold: float
    rule: str
    token_ratio: float | None
    seconds: float
    cost_by_tokens: float | None


def send_cascade(
    table: CascadeTable,
    router: CascadeRouter,
    in_force: InForce | None = None,
    *,
    delay: Delay = AT_ONCE,
    drafting: Drafting = ONE_AT_A_TIME,
    rng: np.random.Generator | None = None,
    trace: list[Decision] | None = None,
) -> CascadeMetrics:
    """Send a table through a router.

    Parameters
    ----------
    table: the recorded answers, in the order in which their queries arrive.
    router: a fresh router.
    in_force: where to note which rules and thresholds were in force (default: nowhere).
    delay: when outcomes arrive (default: at once).
    drafting: how many queries are in flight at once, and how long their answers take (default: one).
    rng: random source of times and delays.
    trace: where to note every decision (default: nowhere).
    """
    loaded = drafting.in_flight > 1
    random = rng or np.random.default_rng(0)
    rounds = timed_rounds(table)
    events: Iterator[Event] = under_load(rounds, drafting, delay, random) if loaded else delayed(rounds, delay, random)
    gateway = SimulatedCascade(router, table, tickets=loaded and drafting.tickets)
    calls = np.zeros((len(table), table.stages), dtype=np.bool_)
    answered = np.zeros(table.stages)
    served = 0.0
    start = time.perf_counter()
    for event in events:
        decision = gateway.handle(event)
        if decision is None or not isinstance(event, Drafted):
            continue
        part = cast(CascadeRound, decision.cascade)
        if in_force is not None:
            in_force.add(decision, router)
        if trace is not None:
            trace.append(decision)
        if decision.serve_draft:
            answered[part.stage - 1] += 1
            served += gateway.served_loss(event, decision)
        else:
            answered[-1] += 1
        calls[event.row - 1] = [*asked_stages(part), decision.call_expert]
    seconds = time.perf_counter() - start
    policy, bettor = router.policy, router.bettor
    tokens, lengths, prices = table.tokens, table.relative_lengths(), np.array(policy.prices)
    return CascadeMetrics(
        cost=float((calls @ prices).mean()),
        expert_call_rate=float(calls[:, -1].mean()),
        empirical_risk=served / len(table),
        answered=tuple((answered / len(table)).tolist()),
        threshold=router.threshold,
        rule=policy.score_names[bettor.active],
        token_ratio=float((calls * tokens).sum() / tokens[:, -1].sum()) if tokens is not None else None,
        seconds=seconds,
        cost_by_tokens=float(((calls * lengths) @ prices).mean()) if lengths is not None else None,
    )


@dataclass(frozen=True, slots=True)
class CascadeReplay:
    """Replays of a table through fresh routers.

    Parameters
    ----------
    table: the recorded answers.
    policy: the policy of the routers.
    epsilon, alpha: what is promised.
    runs: number of replays.
    seed: random seed of the shuffles and coins.
    order: ``shuffled`` for each run, or as ``given``.
    exploration: schedule of exploration (default: that of the policy).
    delay: when outcomes arrive (default: at once).
    drafting: how many queries are in flight at once, and how long their answers take (default: one).
    """

    table: CascadeTable
    policy: Cascade
    epsilon: float
    alpha: float = 0.1
    runs: int = 1
    seed: int = 0
    order: str = "shuffled"
    exploration: Exploration | None = None
    delay: Delay = AT_ONCE
    drafting: Drafting = ONE_AT_A_TIME

    def run(
        self, number: int, in_force: InForce | None = None, *, trace: list[Decision] | None = None
    ) -> CascadeMetrics:
        """The run of that number. Equal numbers give equal runs.

        Parameters
        ----------
        number: the number, from 0.
        in_force: where to note which rules and thresholds were in force (default: nowhere).
        trace: where to note every decision (default: nowhere).
        """
        rng = np.random.default_rng([self.seed, number])
        coins = SeededCoins(int(rng.integers(1 << 63)))
        table = self.table
        if self.order == "shuffled":
            table = table.take(rng.permutation(len(table)))
        policy = replace(self.policy, features=table.features().shape[2])
        router = CascadeRouterFactory(policy, self.epsilon, self.alpha, self.exploration)(coins)
        return send_cascade(table, router, in_force, delay=self.delay, drafting=self.drafting, rng=rng, trace=trace)

    def run_all(self) -> list[CascadeMetrics]:
        """The metrics of all runs."""
        return [self.run(number) for number in range(self.runs)]


def pair_table(table: CascadeTable, stages: Sequence[int]) -> CascadeTable:
    """The table with only these stages, from 1, and the reference."""
    chosen = [stage - 1 for stage in stages]
    tokens = table.tokens[:, [*chosen, table.stages - 1]] if table.tokens is not None else None
    return CascadeTable(table.uncertainty[:, chosen], table.loss[:, chosen], tokens)
