"""What a cascade saves: expert calls, money and promise, beside the pairs of each of its models with the last.

1. Cost is money relative to always asking the last model, by the prices of the cascade.
2. The pairs have all features, so that the difference is what a third model saves, and not a learned score.
3. Streams have their natural length only.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bpac.replay.cascade.comparison import oracle_cost, pair_of
from bpac.replay.cascade.in_force import InForce
from bpac.replay.cascade.replay import CascadeReplay
from bpac.replay.cascade.table import CascadeTable
from bpac.replay.metrics import replay_metrics
from bpac.replay.parallel import Task
from bpac.replay.replay import Replay
from bpac.replay.router_factory import cascade_for, dithered_for, learning_for
from bpac.replay.studies.methods import RoutingMethod
from bpac.replay.studies.on_tables.cascade import ALPHA, GivenCascade
from bpac.replay.studies.on_tables.unsafe import ever_unsafe
from bpac.replay.studies.reporting.replay_results import fingerprint
from bpac.routing.cascade.policy import Cascade
from bpac.routing.policies import Policy, Portfolio
from bpac.routing.policies.stakes import PLAIN_STAKES
from bpac.routing.settings import Settings

CASCADE = "cascade"


class CascadeFeatures(NamedTuple):
    """What a router of a cascade, or of one of its pairs, makes use of.

    Parameters
    ----------
    bolder: bolder stakes at the exploration floor.
    learned: a rule that is fitted on the way; for a pair, a learned score.
    lengths: the lengths of answers, where they are known.
    dithered: dithered scores, where they have few values; in a cascade, spread by length.
    """

    bolder: bool = False
    learned: bool = False
    lengths: bool = False
    dithered: bool = False


ALL = CascadeFeatures(bolder=True, learned=True, lengths=True, dithered=True)
OF_CASCADES = {
    "cascade of all pairs, no features": CascadeFeatures(),
    "cascade with bolder stakes": CascadeFeatures(bolder=True),
    "cascade with a fitted rule": CascadeFeatures(learned=True),
    "cascade with a fitted rule and lengths": CascadeFeatures(learned=True, lengths=True),
    CASCADE: ALL,
}
OF_PAIRS = {
    "no features": CascadeFeatures(),
    "dithered scores": CascadeFeatures(dithered=True),
    "bolder stakes": CascadeFeatures(bolder=True),
    # A pair has no other feature to learn from than the length of its answers.
    "learned scores": CascadeFeatures(learned=True, lengths=True),
    "all features": ALL,
}


@dataclass(frozen=True, slots=True)
class CascadeSavingsTask:
    """Replays of a cascade, with the figures at the end of each.

    Parameters
    ----------
    given: the cascade.
    epsilon: promised bound on the loss.
    features: what it makes use of (default: everything).
    """

    given: GivenCascade
    epsilon: float
    features: CascadeFeatures = ALL

    @property
    def table(self) -> CascadeTable:
        """The recorded answers."""
        return replace(self.given.table, lengths=self.features.lengths)

    @property
    def policy(self) -> Cascade:
        """The policy of the cascade."""
        policy = cascade_for(self.given.prices, self.table)
        if not self.features.bolder:
            policy = replace(policy, **PLAIN_STAKES._asdict())
        if not self.features.dithered:
            policy = replace(policy, spread=0.0)
        return policy if self.features.learned else replace(policy, fit_at=(), fitted_shares=())

    def key(self) -> dict[str, Any]:
        """Everything that its numbers depend on."""
        policy = self.policy
        return {
            "stream": [fingerprint(pair_of(self.given.table, stage)) for stage in range(1, self.given.table.stages)],
            "settings": Settings(self.epsilon, ALPHA, policy, policy.exploration).to_json(),
            "by tokens": True,
        }

    def run(self, number: int) -> dict[str, NDArray[Any]]:
        """The ``figures``."""
        in_force = InForce()
        table, policy, last = self.table, self.policy, self.given.prices[-1]
        done = CascadeReplay(table, policy, self.epsilon, ALPHA).run(number, in_force)
        kept_share = 1.0 - policy.exploration.floor
        unsafe = kept_share * in_force.largest_risk(table) > self.epsilon + 1e-12
        by_tokens = math.nan if done.cost_by_tokens is None else done.cost_by_tokens / last
        figures = [done.expert_call_rate, done.cost / last, done.empirical_risk, unsafe, by_tokens]
        return {"figures": np.array(figures, dtype=np.float64)}


@dataclass(frozen=True, slots=True)
class PairSavingsTask:
    """Replays of the pair of one model and the last.

    Parameters
    ----------
    given: the cascade.
    stage: the model, from 1.
    epsilon: promised bound on the loss.
    features: what it makes use of (default: everything).
    """

    given: GivenCascade
    stage: int
    epsilon: float
    features: CascadeFeatures = ALL

    @property
    def method(self) -> RoutingMethod:
        """How the pair is routed."""
        table = pair_of(self.given.table, self.stage)
        policy: Policy = Portfolio() if self.features.bolder else Portfolio(floor_fractions=())
        policy = dithered_for(policy, table) if self.features.dithered else policy
        policy = learning_for(policy, table) if self.features.learned else policy
        return RoutingMethod("", policy, self.epsilon)

    def key(self) -> dict[str, Any]:
        """Everything that its numbers depend on."""
        return {
            "stream": fingerprint(pair_of(self.given.table, self.stage)),
            "settings": self.method.settings.to_json(),
            "prices": [self.given.prices[self.stage - 1], self.given.prices[-1]],
            "by tokens": True,
        }

    def run(self, number: int) -> dict[str, NDArray[Any]]:
        """The ``figures``."""
        method, prices = self.method, self.given.prices
        table, path = Replay(pair_of(self.given.table, self.stage), method.make_router, seed=number).run(0, trace=True)
        metrics = replay_metrics(table, path)
        draft, rate, tokens = prices[self.stage - 1] / prices[-1], metrics.expert_call_rate, table.expert_tokens
        by_tokens = math.nan
        if tokens is not None and tokens.any():
            by_tokens = draft + tokens[path.call_expert].sum() / tokens.sum()
        unsafe = ever_unsafe(method, table, path.decisions)
        figures = [rate, draft + rate, metrics.empirical_risk, unsafe, by_tokens]
        return {"figures": np.array(figures, dtype=np.float64)}


def cascade_tasks(given: GivenCascade, epsilon: float) -> dict[str, Task]:
    """The tasks of a cascade and of its pairs, each feature alone and all together, by the name in the table."""
    known = given.table.tokens is not None
    tasks: dict[str, Task] = {}
    for stage in range(1, given.table.stages):
        few = pair_of(given.table, stage).has_few_scores
        for name, features in OF_PAIRS.items():
            if _differs(features, known=known, few=few):
                tasks[f"pair of model {stage} and the last, {name}"] = PairSavingsTask(given, stage, epsilon, features)
    for name, features in OF_CASCADES.items():
        if _differs(features, known=known, few=False):
            tasks[name] = CascadeSavingsTask(given, epsilon, features)
    return tasks


def _differs(features: CascadeFeatures, *, known: bool, few: bool) -> bool:
    """Whether a table has what features need: known lengths, or scores with few values."""
    return features == ALL or ((known or not features.lengths) and (few or not features.dithered))


def oracle_share(given: GivenCascade, epsilon: float) -> float:
    """Cost of the oracle relative to always asking the last model."""
    return oracle_cost(given.table, given.prices, epsilon) / given.prices[-1]


def name_of(given: GivenCascade) -> str:
    """The name of a cascade in a table, with its prices."""
    return f"{given.name} ({' : '.join(f'{price:g}' for price in given.prices)})"
