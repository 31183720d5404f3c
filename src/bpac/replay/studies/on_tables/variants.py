"""The variants that ``bpac reproduce savings`` compares: one line for each feature, and one for all of them."""

from collections.abc import Callable

from bpac.replay.parallel import Task
from bpac.replay.router_factory import dithered_for, learning_for, staked_for
from bpac.replay.studies.comparison import Part
from bpac.replay.studies.methods import B_PAC, PORTFOLIO, RoutingMethod
from bpac.replay.studies.on_tables.savings import SavingsTask, Variant, table_of
from bpac.routing.exploration.schedules import Exploration
from bpac.routing.policies import Paper, Policy, Portfolio

# The portfolio without any of the features: the specification's stakes.
PLAIN = Portfolio(floor_fractions=())


def routed(
    policy: Policy,
    exploration: Exploration | None = None,
    *,
    dithers: bool = False,
    stakes: bool = False,
    learns: bool = False,
) -> Callable[[Part, float], Task]:
    """Replays of a policy by the score of the table.

    Parameters
    ----------
    policy: the policy.
    exploration: its exploration schedule (default: the policy's own).
    dithers: whether scores with few values are dithered.
    stakes: whether graded losses have stakes of their own.
    learns: whether a score is learned, if the table has columns to learn from and no graded losses, as in the gateway.
    """

    def task(part: Part, epsilon: float) -> Task:
        table = table_of(part)
        fitting = dithered_for(policy, table) if dithers else policy
        fitting = staked_for(fitting, table) if stakes else fitting
        fitting = learning_for(fitting, table) if learns and not table.has_graded_losses else fitting
        return SavingsTask(RoutingMethod("", fitting, epsilon, exploration), part)

    return task


# The gap is measured from the first.
VARIANTS: tuple[Variant, ...] = (
    Variant(B_PAC, routed(Paper())),
    Variant(PORTFOLIO, routed(PLAIN)),
    Variant("with dithered scores", routed(PLAIN, dithers=True)),
    Variant("with better stakes", routed(Portfolio(), stakes=True)),
    Variant("with learned scores", routed(PLAIN, learns=True)),
    Variant("with all features", routed(Portfolio(), dithers=True, stakes=True, learns=True)),
)
