"""Betting games: how the outcomes of rounds move the threshold, one file for each family of policies.

``bpac.betting.portfolio.PortfolioWealth`` is a game by itself; here are the others.
"""

from bpac.routing.games.budget import BudgetGame
from bpac.routing.games.by_arrival import ByArrival
from bpac.routing.games.calibration import Calibration
from bpac.routing.games.fixed import FixedThreshold
from bpac.routing.games.game import Game
from bpac.routing.games.in_order import InOrder
from bpac.routing.games.split import SplitScores
from bpac.routing.games.sums import SumGame, hoeffding_allowance, naive_allowance

__all__ = [
    "BudgetGame",
    "ByArrival",
    "Calibration",
    "FixedThreshold",
    "Game",
    "InOrder",
    "SplitScores",
    "SumGame",
    "hoeffding_allowance",
    "naive_allowance",
]
