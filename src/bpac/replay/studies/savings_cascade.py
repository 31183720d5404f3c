"""What a cascade saves: expert calls, money and promise, beside the pairs of each of its models with the last.

1. Cost is money relative to always asking the last model, by the prices of the cascade.
2. The pairs have all features, so that the difference is what a third model saves, and not a learned score.
3. Streams have their natural length only.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bpac.replay.cascade.comparison import oracle_cost, pair_of
from bpac.replay.cascade.replay import CascadeReplay, InForce
from bpac.replay.metrics import replay_metrics
from bpac.replay.parallel import Task
from bpac.replay.replay import Replay
from bpac.replay.router_factory import dithered_for, learning_for
from bpac.replay.studies.cascade import ALPHA, GivenCascade
from bpac.replay.studies.learned import is_unsafe
from bpac.replay.studies.methods import RoutingMethod
from bpac.replay.studies.replay_results import fingerprint
from bpac.routing.cascade.policy import Cascade
from bpac.routing.policies import Portfolio
from bpac.routing.settings import Settings

CASCADE = "cascade"


@dataclass(frozen=True, slots=True)
class CascadeSavingsTask:
    """Replays of a cascade, with the figures at the end of each.

    Parameters
    ----------
    given: the cascade.
    epsilon: promised bound on the loss.
    """

    given: GivenCascade
    epsilon: float

    @property
    def policy(self) -> Cascade:
        """The policy of the cascade."""
        return Cascade(prices=self.given.prices, features=self.given.table.features().shape[2])

    def key(self) -> dict[str, Any]:
        """Everything that its numbers depend on."""
        policy = self.policy
        return {
            "stream": [fingerprint(pair_of(self.given.table, stage)) for stage in range(1, self.given.table.stages)],
            "settings": Settings(self.epsilon, ALPHA, policy, policy.exploration).to_json(),
        }

    def run(self, number: int) -> dict[str, NDArray[Any]]:
        """The ``figures``."""
        in_force = InForce()
        done = CascadeReplay(self.given.table, self.policy, self.epsilon, ALPHA).run(number, in_force)
        kept_share = 1.0 - self.policy.exploration.floor
        unsafe = kept_share * in_force.largest_risk(self.given.table) > self.epsilon + 1e-12
        cost = done.cost / self.given.prices[-1]
        return {"figures": np.array([done.expert_call_rate, cost, done.empirical_risk, unsafe])}


@dataclass(frozen=True, slots=True)
class PairSavingsTask:
    """Replays of the pair of one model and the last, with all features.

    Parameters
    ----------
    given: the cascade.
    stage: the model, from 1.
    epsilon: promised bound on the loss.
    """

    given: GivenCascade
    stage: int
    epsilon: float

    @property
    def method(self) -> RoutingMethod:
        """How the pair is routed."""
        table = pair_of(self.given.table, self.stage)
        return RoutingMethod("", learning_for(dithered_for(Portfolio(), table), table), self.epsilon)

    def key(self) -> dict[str, Any]:
        """Everything that its numbers depend on."""
        return {
            "stream": fingerprint(pair_of(self.given.table, self.stage)),
            "settings": self.method.settings.to_json(),
            "prices": [self.given.prices[self.stage - 1], self.given.prices[-1]],
        }

    def run(self, number: int) -> dict[str, NDArray[Any]]:
        """The ``figures``."""
        method, prices = self.method, self.given.prices
        table, path = Replay(pair_of(self.given.table, self.stage), method.make_router, seed=number).run(0, trace=True)
        metrics = replay_metrics(table, path)
        cost = prices[self.stage - 1] / prices[-1] + metrics.expert_call_rate
        unsafe = is_unsafe(table, path.decisions, method.settings.terms.kept_share, self.epsilon)
        return {"figures": np.array([metrics.expert_call_rate, cost, metrics.empirical_risk, unsafe])}


def cascade_tasks(given: GivenCascade, epsilon: float) -> dict[str, Task]:
    """The tasks of a cascade and of its pairs, by the name that they have in the table."""
    pairs: dict[str, Task] = {
        f"pair of model {stage} and the last, all features": PairSavingsTask(given, stage, epsilon)
        for stage in range(1, given.table.stages)
    }
    return {**pairs, CASCADE: CascadeSavingsTask(given, epsilon)}


def oracle_share(given: GivenCascade, epsilon: float) -> float:
    """Cost of the oracle relative to always asking the last model."""
    return oracle_cost(given.table, given.prices, epsilon) / given.prices[-1]


def name_of(given: GivenCascade) -> str:
    """The name of a cascade in a table, with its prices."""
    return f"{given.name} ({' : '.join(f'{price:g}' for price in given.prices)})"
