"""Policies: values that say which betting game a route plays. Strings select ready compositions."""

from dataclasses import replace

from bpac.arguments import one_of
from bpac.betting.wealth.thresholds import PriorThreshold
from bpac.errors import SettingsError
from bpac.routing.policies.baselines import Fixed, Hoeffding, Naive, Offline
from bpac.routing.policies.budget import Budget
from bpac.routing.policies.paper import Paper
from bpac.routing.policies.policy import Policy
from bpac.routing.policies.portfolio import MEMORIES, Portfolio

__all__ = [
    "MEMORIES",
    "ORACLE",
    "POLICIES",
    "Budget",
    "Fixed",
    "Hoeffding",
    "Naive",
    "Offline",
    "Paper",
    "Policy",
    "Portfolio",
    "named_policy",
]

# The oracle's threshold depends on the data: whoever has a table computes it and fills it in.
ORACLE = Fixed(explores=0.05)

POLICIES: dict[str, Policy] = {
    "portfolio": Portfolio(),
    "budget": Budget(),
    "paper": Paper(),
    "paper-prior": Paper(rule=PriorThreshold()),
    "naive": Naive(),
    "hoeffding": Hoeffding(),
    "hoeffding-union": Hoeffding(union=True),
    "offline": Offline(),
    "always": Fixed(0.0),
    "never": Fixed(1.0),
    "oracle": ORACLE,
}


def named_policy(name: str, memory: str | None = None, assume: str | None = None) -> Policy:
    """The ready composition of that name.

    >>> named_policy("portfolio", memory="latched").memory
    'latched'
    """
    one_of(name, "policy", tuple(POLICIES))
    policy = POLICIES[name]
    if memory is None and assume is None:
        return policy
    if not isinstance(policy, Portfolio):
        raise SettingsError(f'memory and assume belong to policy "portfolio", not to "{name}": leave them out')
    one_of(assume or "iid", "assume", ("iid", "any"))
    one_of(memory or "alarmed", "memory", MEMORIES)
    # Both were checked a line ago.
    return replace(policy, memory=memory, assume=assume or "iid", levels=None)  # type: ignore[arg-type]
