"""Betting games: how the outcomes of rounds move the threshold, one file for each family of policies.

``bpac.betting.wealth.portfolio.PortfolioWealth`` is a game by itself; here are the others.
"""

from bpac.routing.bettors.bettor import Bettor
from bpac.routing.bettors.budget import BudgetBettor
from bpac.routing.bettors.calibration import Calibration
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
    "FixedThreshold",
    "InOrder",
    "SplitScores",
    "SumBettor",
    "hoeffding_allowance",
    "naive_allowance",
]
