"""What a cascade is compared with: the pairs of each model with the last, and an oracle that knows every loss."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bpac.betting.payoff import Terms
from bpac.replay.cascade.replay import AT_ONCE, ONE_AT_A_TIME
from bpac.replay.cascade.table import CascadeTable
from bpac.replay.metrics import replay_metrics
from bpac.replay.replay import send_table
from bpac.replay.router_factory import gateway_policy
from bpac.replay.simulation.delays import Delay
from bpac.replay.simulation.drafting import Drafting
from bpac.replay.tables.table import Table
from bpac.routing.cascade.fitting import stage_sets
from bpac.routing.cascade.full_audits import Estimates, FullAudits
from bpac.routing.cascade.rounds import StageOutcomes
from bpac.routing.cascade.rules import UncertaintyRule
from bpac.routing.coins import SeededCoins
from bpac.routing.policies import Portfolio
from bpac.routing.router import Router

# What the oracle explores, as the default policy does at least.
FLOOR = 0.05


def pair_cost(
    table: CascadeTable,
    stage: int,
    prices: Sequence[float],
    epsilon: float,
    *,
    alpha: float,
    run: tuple[int, int],
    order: str = "shuffled",
    delay: Delay = AT_ONCE,
    drafting: Drafting = ONE_AT_A_TIME,
    plain: bool = False,
) -> float:
    """Cost per request of one run of the pair of a model and the last.

    Parameters
    ----------
    table: the recorded answers.
    stage: the model, from 1.
    prices: price of a call of each model.
    epsilon, alpha: what is promised.
    run: random seed, and number of the run; a cascade's run of that number has the same order.
    order: ``shuffled``, or as ``given``.
    delay: when outcomes arrive (default: at once).
    drafting: how many drafts are in flight at once, and how long they take (default: one).
    plain: whether scores are neither dithered nor learned (default: the pair is as the gateway would run it).
    """
    rng = np.random.default_rng(run)
    coins = SeededCoins(int(rng.integers(1 << 63)))
    rows = rng.permutation(len(table)) if order == "shuffled" else np.arange(len(table))
    pair = pair_of(table, stage)
    router = Router(epsilon, alpha, Portfolio() if plain else gateway_policy(pair), coins=coins)
    metrics = replay_metrics(*send_table(pair.take(rows), router, delay, rng, drafting=drafting))
    return prices[stage - 1] + prices[-1] * metrics.expert_call_rate


def pair_of(table: CascadeTable, stage: int) -> Table:
    """The table of the pair of a model and the last, with the length of the model's answers as a feature.

    Parameters
    ----------
    table: the recorded answers.
    stage: the model, from 1.
    """
    uncertainty, loss, tokens = table.uncertainty[:, stage - 1], table.loss[:, stage - 1], table.tokens
    if tokens is None:
        return Table(uncertainty, loss)
    lengths = tokens[:, stage - 1]
    return Table(uncertainty, loss, lengths, tokens[:, -1], features={"draft_tokens": lengths.astype(object)})


class Oracle(NamedTuple):
    """What an oracle spends.

    Parameters
    ----------
    cost: per request.
    expert_call_rate: share of requests for which it asks the last model.
    stages: the models that it asks before the last, one after the other.
    threshold: an answer whose uncertainty is below it is accepted.
    """

    cost: float
    expert_call_rate: float
    stages: tuple[int, ...] = ()
    threshold: float = 0.0

    def accepts(self, table: CascadeTable) -> NDArray[np.bool_]:
        """Whether it accepts an answer to each question of a table."""
        below = table.uncertainty[:, [stage - 1 for stage in self.stages]] < self.threshold
        accepted: NDArray[np.bool_] = np.logical_or.reduce(below, axis=1)
        return accepted


def oracle_cost(table: CascadeTable, prices: Sequence[float], epsilon: float) -> float:
    """Cost per request of the oracle."""
    return cheapest_oracle(table, prices, epsilon).cost


def cheapest_oracle(table: CascadeTable, prices: Sequence[float], epsilon: float) -> Oracle:
    """The cheapest set of models with one threshold on their uncertainties whose risk is at most ε.

    It is chosen by an oracle that knows every loss of the table. It audits 5 % of what it accepts.
    """
    terms = Terms(epsilon, FLOOR)
    sample = FullAudits()
    rows = zip(table.uncertainty.tolist(), table.loss.tolist(), strict=True)
    sample.rounds = [StageOutcomes(tuple((u,) for u in scores), tuple(losses)) for scores, losses in rows]
    sample.weights = [1.0] * len(table)
    weights = np.ones(len(table))
    found = [Oracle(prices[-1], 1.0)]
    for stages in stage_sets(len(prices) - 1):
        estimates = Estimates(UncertaintyRule(stages), prices, FLOOR)
        estimates.follow(sample)
        threshold = estimates.looks_safe(weights, epsilon / terms.kept_share)
        cost, accepted, _ = estimates.cost(weights, threshold)
        found.append(Oracle(cost, 1.0 - (1.0 - FLOOR) * accepted, stages, threshold))
    return min(found)
