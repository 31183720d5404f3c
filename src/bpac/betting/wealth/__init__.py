"""Wealth of betting strategies, and the thresholds it certifies.

``portfolio.py`` is the wealth of the default policy. ``grid.py`` is the paper's, with its bets (``bets.py``), its rules
for the threshold (``thresholds.py``) and how fast it grows (``growth.py``).
"""
