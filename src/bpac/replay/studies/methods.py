"""Routing methods: the lines of a comparison."""

from collections.abc import Mapping
from dataclasses import dataclass

from bpac.replay.router_factory import RouterFactory
from bpac.replay.simulation.delays import Delay
from bpac.routing.exploration.schedules import Exploration
from bpac.routing.policies import Paper, Policy, Portfolio
from bpac.routing.settings import Settings

ALPHA = 0.1
# The names of the paper's policy and of the default policy in tables and figures.
B_PAC, PORTFOLIO = "B-PAC", "portfolio"
# The two policies that most studies compare.
BOTH: tuple[tuple[str, Policy], ...] = ((B_PAC, Paper()), (PORTFOLIO, Portfolio()))


@dataclass(frozen=True, slots=True)
class RoutingMethod:
    """A policy with its settings: one line of a comparison.

    Parameters
    ----------
    label: its name in tables and figures.
    policy: the routing policy.
    epsilon: promised bound on the loss.
    exploration: schedule of exploration (default: that of the policy).
    delay: when outcomes arrive.
    score: the score that routes the drafts (default: that of the paper).
    line: its label in figures (default: its name).
    """

    label: str
    policy: Policy
    epsilon: float
    exploration: Exploration | None = None
    delay: Delay = Delay()
    score: str = "uncertainty"
    line: str = ""

    @property
    def make_router(self) -> RouterFactory:
        """Makes routers with these settings."""
        return RouterFactory(self.policy, self.epsilon, ALPHA, self.exploration)

    @property
    def settings(self) -> Settings:
        """All settings of these routers."""
        return Settings(self.epsilon, ALPHA, self.policy, self.exploration or self.policy.exploration)


def compared(epsilon: float, policies: Mapping[str, Policy]) -> tuple[RoutingMethod, ...]:
    """A method for each policy, with the same ε."""
    return tuple(RoutingMethod(label, policy, epsilon) for label, policy in policies.items())
