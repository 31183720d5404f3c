"""Makes the routers of replays and simulations."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from bpac.replay.cascade.table import CascadeTable
from bpac.replay.tables.table import Table
from bpac.routing.cascade.policy import Cascade
from bpac.routing.cascade.router import CascadeRouter
from bpac.routing.cascade.spreading import WIDTH as SPREAD
from bpac.routing.coins import Coins
from bpac.routing.dithering import WIDTH
from bpac.routing.exploration.schedules import Exploration
from bpac.routing.journal.entries import Entry
from bpac.routing.learning.learned_score import FIT_TOGETHER, LearnedScore
from bpac.routing.policies import Policy, Portfolio
from bpac.routing.router import Router


def dithered_for(policy: Policy, table: Table) -> Policy:
    """The policy for a table: the default policy dithers scores with few values, as it does in the gateway.

    Fixed memories are left as they are: they are the reference that the specification's traces describe.
    """
    if isinstance(policy, Portfolio) and policy.memory == "alarmed" and table.has_few_scores:
        return replace(policy, dither=WIDTH)
    return policy


def staked_for(policy: Policy, table: Table) -> Policy:
    """The policy for a table: the default policy has other stakes for graded losses, as it does in the gateway."""
    return policy.for_graded_losses() if isinstance(policy, Portfolio) and table.has_graded_losses else policy


def cascade_for(prices: Sequence[float], table: CascadeTable, memory: str = "alarmed") -> Cascade:
    """The policy as a game of the gateway would have it for the models of a table.

    Parameters
    ----------
    prices: price of a call of each model, the reference last.
    table: the recorded answers.
    memory: of the policy.
    """
    spread = SPREAD if table.has_few_scores else 0.0
    return Cascade(prices=tuple(prices), features=table.features().shape[2], memory=memory, spread=spread)


def suited_to(policy: Policy, table: Table) -> Policy:
    """The policy as a game of the gateway would have it for the scores and losses of a table."""
    return staked_for(dithered_for(policy, table), table)


def learning_for(policy: Policy, table: Table, *, together: bool = False) -> Policy:
    """The policy with a score that is learned from the features of a table, if it can learn and the table has any.

    Parameters
    ----------
    policy: the policy.
    table: the recorded answers.
    together: whether several games learn together (default: false).
    """
    if not isinstance(policy, Portfolio) or policy.assume != "iid" or policy.scores or not table.features:
        return policy
    names = tuple(table.features)
    learned = LearnedScore(names, fit_at=FIT_TOGETHER) if together else LearnedScore(names)
    return replace(policy, learn=learned)


def gateway_policy(table: Table) -> Policy:
    """The policy of a game of the gateway with two models whose scores, losses and features are those of a table."""
    policy = suited_to(Portfolio(), table)
    return policy if table.has_graded_losses else learning_for(policy, table)


@dataclass(frozen=True, slots=True)
class RouterFactory:
    """Makes fresh routers with the same settings. Unlike a closure it can be sent to worker processes.

    Parameters
    ----------
    policy, epsilon, alpha, alpha_epochs: settings of the routers.
    exploration: schedule of exploration (default: that of the policy).
    """

    policy: Policy
    epsilon: float
    alpha: float
    exploration: Exploration | None = None
    alpha_epochs: Literal["all", "each"] = "all"

    def __call__(self, coins: Coins, journal: Callable[[Entry], object] | None = None) -> Router:
        """A fresh router."""
        return Router(
            self.epsilon,
            self.alpha,
            self.policy,
            exploration=self.exploration,
            alpha_epochs=self.alpha_epochs,
            coins=coins,
            journal=journal,
        )

    @property
    def kept_share(self) -> float:
        """Largest share of the drafts below the threshold that is served (κ)."""
        return 1.0 - (self.exploration or self.policy.exploration).floor


@dataclass(frozen=True, slots=True)
class CascadeRouterFactory:
    """Makes fresh routers of a cascade with the same settings.

    Parameters
    ----------
    policy, epsilon, alpha: settings of the routers.
    exploration: schedule of exploration (default: that of the policy).
    """

    policy: Cascade
    epsilon: float
    alpha: float
    exploration: Exploration | None = None

    def __call__(self, coins: Coins, journal: Callable[[Entry], object] | None = None) -> CascadeRouter:
        """A fresh router."""
        return CascadeRouter(
            self.epsilon, self.policy, self.alpha, exploration=self.exploration, coins=coins, journal=journal
        )
