"""What happened in a replay, step by step, and the paper's three metrics computed from it (MATH section 9)."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bpac.replay.tables.table import Table
from bpac.routing.decision import Decision

Vector = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ReplayPath:
    """What happened at each step of a replay.

    Parameters
    ----------
    call_expert, serve_draft: what was decided at each step.
    threshold: the threshold after the last step.
    seconds: time spent in the router.
    decisions: the decisions themselves, if they were recorded.
    prices: price of an expert call at each step, where hours have prices.
    """

    call_expert: NDArray[np.bool_]
    serve_draft: NDArray[np.bool_]
    threshold: float
    seconds: float
    decisions: tuple[Decision, ...] = ()
    prices: Vector | None = None


@dataclass(frozen=True, slots=True)
class ReplayMetrics:
    """The metrics of one replay.

    Parameters
    ----------
    expert_call_rate: share of rounds in which the expert was called (ECP).
    empirical_risk: average loss of the answers that were served (ER).
    token_ratio: tokens spent, relative to always calling the expert (TP); None if the table has no tokens.
    threshold: the threshold after the last step.
    seconds: time spent in the router.
    expert_cost: price of all expert calls per query; None if hours have no prices.
    """

    expert_call_rate: float
    empirical_risk: float
    token_ratio: float | None
    threshold: float
    seconds: float
    expert_cost: float | None = None


def replay_metrics(table: Table, path: ReplayPath) -> ReplayMetrics:
    """The metrics of a replay, given its table in the order of decisions."""
    tokens = None
    if table.draft_tokens is not None and table.expert_tokens is not None and table.expert_tokens.sum() > 0:
        spent = table.draft_tokens.sum() + table.expert_tokens[path.call_expert].sum()
        tokens = float(spent / table.expert_tokens.sum())
    return ReplayMetrics(
        expert_call_rate=float(path.call_expert.mean()),
        empirical_risk=float((table.loss * path.serve_draft).mean()),
        token_ratio=tokens,
        threshold=path.threshold,
        seconds=path.seconds,
        expert_cost=None if path.prices is None else float((path.prices * path.call_expert).mean()),
    )


def metrics_over_time(table: Table, path: ReplayPath) -> Vector:
    """ER, ECP, TP and threshold after every step, one row each, of a replay whose decisions were recorded.

    TP is NaN if the table has no tokens.
    """
    steps = np.arange(1, len(table) + 1)
    tokens = np.full(len(table), np.nan)
    if table.draft_tokens is not None and table.expert_tokens is not None:
        spent = table.draft_tokens + np.where(path.call_expert, table.expert_tokens, 0.0)
        tokens = np.cumsum(spent) / np.cumsum(table.expert_tokens)
    thresholds = np.array([decision.threshold for decision in path.decisions])
    risk = np.cumsum(table.loss * path.serve_draft) / steps
    return np.array([risk, np.cumsum(path.call_expert) / steps, tokens, thresholds])


def mean_and_std(values: Sequence[float]) -> dict[str, float] | None:
    """Mean and standard deviation over runs; None if there are no values."""
    if not values:
        return None
    return {"mean": statistics.fmean(values), "std": statistics.stdev(values) if len(values) > 1 else 0.0}
