"""Makes the routers of replays and simulations."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from bpac.routing.coins import Coins
from bpac.routing.exploration.schedules import Exploration
from bpac.routing.journal.entries import Entry
from bpac.routing.policies import Policy
from bpac.routing.router import Router


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
