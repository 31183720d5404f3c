"""Which audits are worth grading: those whose loss could still lift a threshold."""

import math

from bpac.betting.wealth.portfolio import PortfolioWealth
from bpac.routing.bettors import FixedThreshold
from bpac.routing.decision import Decision
from bpac.routing.route import Route

# Fewest decisions and outcomes after which the wealth of all thresholds is looked at again. In between the answer may
# be stale, which costs a few grades, or a few audits given up although they were worth something; never the promise.
LOOK_EVERY = 128


class GradingValue:
    """Remembers from which score on thresholds have no prospect of being certified."""

    __slots__ = ("_epoch", "_hopeless", "_next_look")

    def __init__(self) -> None:
        self._epoch = self._next_look = 0
        self._hopeless = math.inf

    def of(self, decision: Decision, route: Route) -> bool:
        """Whether the loss of an audit could still lift a threshold."""
        if decision.propensity < 1.0:
            return True  # it stands for drafts that were kept
        if decision.uncertainty >= 1.0 or isinstance(route.bettor, FixedThreshold):
            return False
        if not isinstance(route.bettor, PortfolioWealth):
            return True
        if route.epoch != self._epoch or route.entries >= self._next_look:
            charged = [owed for owed in route.owed.values() if owed.epoch == route.epoch]
            # A look takes time for each open audit, so the more there are, the rarer it is.
            self._epoch, self._next_look = route.epoch, route.entries + max(LOOK_EVERY, len(charged))
            self._hopeless = route.bettor.hopeless_from(math.log(route.settings.alpha), charged)
        return decision.uncertainty < self._hopeless
