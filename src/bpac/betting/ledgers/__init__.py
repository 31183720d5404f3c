"""Ledgers: sums of losses that do not depend on the order in which outcomes arrive.

``ledger.py`` has the events that every account of rounds follows, ``levels.py`` the scores at which losses are booked;
``loss_table.py`` keeps the sums and ``weighted_losses.py`` finds the largest threshold whose sum is small enough.
"""
