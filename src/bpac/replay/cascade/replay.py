"""Replays of a cascade: the rows of a table sent through a router, many times over."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
from numpy.typing import NDArray

from bpac.replay.cascade.table import CascadeTable
from bpac.routing.cascade.policy import Cascade
from bpac.routing.cascade.rounds import CascadeRound
from bpac.routing.cascade.router import CascadeRouter
from bpac.routing.cascade.rules import Rule, values
from bpac.routing.coins import SeededCoins
from bpac.routing.decision import Decision
from bpac.routing.exploration.schedules import Exploration

Vector = NDArray[np.float64]


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
    """

    cost: float
    expert_call_rate: float
    empirical_risk: float
    answered: tuple[float, ...]
    threshold: float
    rule: str
    token_ratio: float | None
    seconds: float


class InForce:
    """The rules and thresholds that were in force at any time."""

    def __init__(self) -> None:
        self._seen: dict[tuple[int, int], tuple[Rule, set[float]]] = {}

    def add(self, decision: Decision, router: CascadeRouter) -> None:
        """Note what was in force for a query, before its outcome is reported."""
        if decision.threshold > 0.0:
            number = cast(CascadeRound, decision.cascade).rule
            key = decision.epoch, number
            if key not in self._seen:
                self._seen[key] = router.bettor.rules[number], set()
            self._seen[key][1].add(decision.threshold)

    def largest_risk(self, table: CascadeTable) -> float:
        """The largest average loss on a table of any rule at any threshold that was in force."""
        answers = [list(map(tuple, row)) for row in _answers(table)]
        largest = 0.0
        for rule, thresholds in self._seen.values():
            found = np.array([values(rule, row) for row in answers])
            # Losses of the answers that the rule asks for, and 0 for the reference.
            losses = np.column_stack((table.loss[:, [stage - 1 for stage in rule.stages]], np.zeros(len(table))))
            for threshold in thresholds:
                below = np.column_stack((found < threshold, np.ones(len(table), dtype=np.bool_)))
                stops = below.argmax(axis=1)
                largest = max(largest, float(losses[np.arange(len(table)), stops].mean()))
        return largest


def _answers(table: CascadeTable) -> list[list[list[float]]]:
    """For each row and model, the uncertainty and the features of its answer."""
    found: list[list[list[float]]] = np.concatenate((table.uncertainty[:, :, None], table.features()), axis=2).tolist()
    return found


def send_cascade(table: CascadeTable, router: CascadeRouter, in_force: InForce | None = None) -> CascadeMetrics:
    """Send a table through a router, one query after the other.

    Parameters
    ----------
    table: the recorded answers.
    router: a fresh router.
    in_force: where to note which rules and thresholds were in force (default: nowhere).
    """
    stages = table.stages
    last = stages - 1
    answers = _answers(table)
    losses = table.loss.tolist()
    calls = np.zeros((len(table), stages), dtype=np.bool_)
    answered = np.zeros(stages)
    served = 0.0
    start = time.perf_counter()
    for row, (row_answers, row_losses) in enumerate(zip(answers, losses, strict=True)):
        walk = router.walk()
        while (stage := walk.next_stage) is not None:
            walk.answered(*row_answers[stage - 1])
            calls[row, stage - 1] = True
        decision = router.decide(walk)
        part = cast(CascadeRound, decision.cascade)
        if in_force is not None:
            in_force.add(decision, router)
        if decision.serve_draft:
            answered[part.stage - 1] += 1
            served += row_losses[part.stage - 1]
        else:
            answered[last] += 1
        if decision.call_expert:
            calls[row, last] = True
            if part.full:
                calls[row] = True
            asked = calls[row]
            router.observe_stages(
                decision,
                [tuple(answer) if asked[stage] else () for stage, answer in enumerate(row_answers)],
                [loss if asked[stage] else None for stage, loss in enumerate(row_losses)],
            )
    seconds = time.perf_counter() - start
    policy, bettor = router.policy, router.bettor
    tokens = table.tokens
    return CascadeMetrics(
        cost=float((calls @ np.array(policy.prices)).mean()),
        expert_call_rate=float(calls[:, last].mean()),
        empirical_risk=served / len(table),
        answered=tuple((answered / len(table)).tolist()),
        threshold=router.threshold,
        rule=policy.score_names[bettor.active],
        token_ratio=float((calls * tokens).sum() / tokens[:, last].sum()) if tokens is not None else None,
        seconds=seconds,
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
    """

    table: CascadeTable
    policy: Cascade
    epsilon: float
    alpha: float = 0.1
    runs: int = 1
    seed: int = 0
    order: str = "shuffled"
    exploration: Exploration | None = None

    def run(self, number: int, in_force: InForce | None = None) -> CascadeMetrics:
        """The run of that number. Equal numbers give equal runs.

        Parameters
        ----------
        number: the number, from 0.
        in_force: where to note which rules and thresholds were in force (default: nowhere).
        """
        rng = np.random.default_rng([self.seed, number])
        coins = SeededCoins(int(rng.integers(1 << 63)))
        table = self.table
        if self.order == "shuffled":
            table = table.take(rng.permutation(len(table)))
        policy = replace(self.policy, features=table.features().shape[2])
        router = CascadeRouter(self.epsilon, policy, self.alpha, exploration=self.exploration, coins=coins)
        return send_cascade(table, router, in_force)

    def run_all(self) -> list[CascadeMetrics]:
        """The metrics of all runs."""
        return [self.run(number) for number in range(self.runs)]


def pair_table(table: CascadeTable, stages: Sequence[int]) -> CascadeTable:
    """The table with only these stages, from 1, and the reference."""
    chosen = [stage - 1 for stage in stages]
    tokens = table.tokens[:, [*chosen, table.stages - 1]] if table.tokens is not None else None
    return CascadeTable(table.uncertainty[:, chosen], table.loss[:, chosen], tokens)
