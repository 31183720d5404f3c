"""Policies: values that say how a router bets, one file for each family.

``policy.py`` says what every policy has; ``portfolio.py`` is the default, ``budget.py`` keeps the average loss below ε
on any stream, ``paper.py`` is the paper's algorithm and ``baselines.py`` what the paper compares it with. ``POLICIES``
has a ready policy for each name.
"""

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

# The oracle's threshold depends on the data: a replay computes it from its table and fills it in.
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
    """The ready policy of that name.

    Parameters
    ----------
    name: a key of ``POLICIES``.
    memory, assume: settings of the portfolio policy, where they differ from its defaults.

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
    # Both were checked above.
    return Portfolio(memory=memory, assume=assume or "iid")  # type: ignore[arg-type]
