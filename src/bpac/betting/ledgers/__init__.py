"""Ledgers: sums of losses that do not depend on the order in which outcomes arrive.

``ledger.py`` says what an account of rounds is told, ``levels.py`` at which scores losses are booked, ``loss_table.py``
keeps the sums and ``weighted_losses.py`` finds the largest threshold whose sum is small enough.
"""
