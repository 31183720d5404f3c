"""Which audits are worth grading: those whose loss could still raise a threshold.

1. Grading costs time or money. A loss that is not graded counts as 1, which never breaks the promise.
2. A loss counts only for the thresholds above its score. If none of them has a prospect of being certified, it makes no
   difference whether the loss is known.
3. Where several scores bet, one of them with a prospect is enough; and while a score is still to be learned, every
   audit is worth grading.
4. An audit of an accepted draft is always worth grading: it stands for drafts that were kept.
"""

import math

from bpac.betting.wealth.portfolio import PortfolioWealth
from bpac.routing.bettors import Candidates, FixedThreshold
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
        self._hopeless_from: list[float] = []  # for each score that bets

    def of(self, decision: Decision, route: Route) -> bool:
        """Whether the loss of an audit could still raise a threshold.

        Parameters
        ----------
        decision: the audit.
        route: the state of its router.
        """
        if decision.propensity < 1.0:
            return True
        bettor, scores = route.bettor, decision.uncertainties or (decision.uncertainty,)
        if min(scores) >= 1.0 or isinstance(bettor, FixedThreshold):
            return False
        if isinstance(bettor, Candidates):
            wealths = bettor.wealths
        elif isinstance(bettor, PortfolioWealth):
            wealths = [bettor]
        else:
            return True
        if route.learning is not None and route.learning.wants_more:
            return True  # a score is going to be learned from it
        looked = len(self._hopeless_from) == len(wealths)
        if not looked or route.epoch != self._epoch or route.entries >= self._next_look:
            charged = [owed for owed in route.owed.values() if owed.epoch == route.epoch]
            # A look takes time for each open audit, so the more there are, the rarer it is.
            self._epoch, self._next_look = route.epoch, route.entries + max(LOOK_EVERY, len(charged))
            self._hopeless_from = [
                wealth.hopeless_from(
                    HOPELESS * math.log(route.settings.alpha),
                    [owed for owed in charged if len(owed.uncertainties or (0.0,)) > score],
                )
                for score, wealth in enumerate(wealths)
            ]
        return any(score < hopeless for score, hopeless in zip(scores, self._hopeless_from, strict=False))
