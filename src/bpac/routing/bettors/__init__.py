"""Bettors: how the outcomes of rounds move the threshold within an epoch, one file for each family of policies.

``bettor.py`` says what every bettor has. ``bpac.betting.wealth.portfolio.PortfolioWealth``, the bettor of the default
policy, is pure mathematics and lives there; the others are here. ``split.py`` is several of them that compete,
and ``candidates.py`` is several that join on the way.
"""

from bpac.routing.bettors.bettor import Bettor
from bpac.routing.bettors.budget import BudgetBettor
from bpac.routing.bettors.calibration import Calibration
from bpac.routing.bettors.candidates import Candidates
from bpac.routing.bettors.fixed import FixedThreshold
from bpac.routing.bettors.in_order import InOrder
from bpac.routing.bettors.split import SplitScores
from bpac.routing.bettors.sums import SumBettor, hoeffding_allowance, naive_allowance
from bpac.routing.tickets.by_arrival import ByArrival

__all__ = [
    "Bettor",
    "BudgetBettor",
    "ByArrival",
    "Calibration",
    "Candidates",
    "FixedThreshold",
    "InOrder",
    "SplitScores",
    "SumBettor",
    "hoeffding_allowance",
    "naive_allowance",
]
