"""The variants that ``bpac reproduce savings`` compares: one line for each feature, and one for all of them."""

from collections.abc import Callable

from bpac.replay.parallel import Task
from bpac.replay.router_factory import dithered_for, learning_for
from bpac.replay.studies.comparison import Part
from bpac.replay.studies.methods import B_PAC, PORTFOLIO, RoutingMethod
from bpac.replay.studies.savings import SavingsTask, Variant, table_of
from bpac.routing.exploration.schedules import Exploration
from bpac.routing.policies import Paper, Policy, Portfolio

# The portfolio without any of the features.
PLAIN = Portfolio(floor_fractions=())


def routed(
    policy: Policy, exploration: Exploration | None = None, *, dithers: bool = False, learns: bool = False
) -> Callable[[Part, float], Task]:
    """Replays of a policy by the score of the table.

    Parameters
    ----------
    policy: the policy.
    exploration: its exploration schedule (default: the policy's own).
    dithers: whether scores with few values are dithered.
    learns: whether a score is learned, if the table has columns to learn from.
    """

    def task(part: Part, epsilon: float) -> Task:
        fitting = dithered_for(policy, table_of(part)) if dithers else policy
        fitting = learning_for(fitting, table_of(part)) if learns else fitting
        return SavingsTask(RoutingMethod("", fitting, epsilon, exploration), part)

    return task


# The gap is measured from the first.
VARIANTS: tuple[Variant, ...] = (
    Variant(B_PAC, routed(Paper())),
    Variant(PORTFOLIO, routed(PLAIN)),
    Variant("with dithered scores", routed(PLAIN, dithers=True)),
    Variant("with bolder stakes at the floor", routed(Portfolio())),
    Variant("with learned scores", routed(PLAIN, learns=True)),
    Variant("with all features", routed(Portfolio(), dithers=True, learns=True)),
)
