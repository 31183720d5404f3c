"""The variants that ``bpac reproduce savings`` compares: one line for each feature, and one for all of them."""

from collections.abc import Callable

from bpac.replay.parallel import Task
from bpac.replay.studies.comparison import Part
from bpac.replay.studies.methods import B_PAC, PORTFOLIO, RoutingMethod
from bpac.replay.studies.savings import SavingsTask, Variant
from bpac.routing.exploration.schedules import Exploration
from bpac.routing.policies import Paper, Policy, Portfolio


def routed(policy: Policy, exploration: Exploration | None = None) -> Callable[[Part, float], Task]:
    """Replays of a policy by the score of the table.

    Parameters
    ----------
    policy: the policy.
    exploration: its exploration schedule (default: the policy's own).
    """
    return lambda part, epsilon: SavingsTask(RoutingMethod("", policy, epsilon, exploration), part)


# The gap is measured from the first.
VARIANTS: tuple[Variant, ...] = (
    Variant(B_PAC, routed(Paper())),
    Variant(PORTFOLIO, routed(Portfolio())),
)
