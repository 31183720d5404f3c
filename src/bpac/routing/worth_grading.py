"""Which audits are worth grading: those whose loss could still raise a threshold.

1. Grading costs time or money. A loss that is not graded counts as 1, which never breaks the promise.
2. A loss counts only for the thresholds above its score. If none of them has a prospect of being certified, it makes no
   difference whether the loss is known.
3. An audit of an accepted draft is always worth grading: it stands for drafts that were kept.
"""

import math

from bpac.betting.wealth.portfolio import PortfolioWealth
from bpac.routing.bettors import FixedThreshold
from bpac.routing.decision import Decision
from bpac.routing.route import Route

# Fewest decisions and outcomes after which the wealth of all thresholds is looked at again. In between the answer may
# be out of date. That costs a few grades, or a few audits given up although they were worth something; never the
# promise.
LOOK_EVERY = 128
# A threshold whose wealth has fallen to this power of α has no prospect. Bold stakes at the exploration floor lose much
# at a loss and win it back, so α itself would be too early.
HOPELESS = 1.5


class GradingValue:
    """Remembers the score from which on no threshold has a prospect of being certified."""

    __slots__ = ("_epoch", "_hopeless_from", "_next_look")

    def __init__(self) -> None:
        self._epoch = self._next_look = 0
        self._hopeless_from = math.inf

    def of(self, decision: Decision, route: Route) -> bool:
        """Whether the loss of an audit could still raise a threshold.

        Parameters
        ----------
        decision: the audit.
        route: the state of its router.
        """
        if decision.propensity < 1.0:
            return True
        bettor = route.bettor
        if decision.uncertainty >= 1.0 or isinstance(bettor, FixedThreshold):
            return False
        if not isinstance(bettor, PortfolioWealth):
            return True
        if route.epoch != self._epoch or route.entries >= self._next_look:
            charged = [owed for owed in route.owed.values() if owed.epoch == route.epoch]
            # A look takes time for each open audit, so the more there are, the rarer it is.
            self._epoch, self._next_look = route.epoch, route.entries + max(LOOK_EVERY, len(charged))
            self._hopeless_from = bettor.hopeless_from(HOPELESS * math.log(route.settings.alpha), charged)
        return decision.uncertainty < self._hopeless_from
