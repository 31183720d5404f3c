"""The mathematics (``docs/mathematics.md``). It is pure: no clock, no file, no socket, no random source.

``payoff.py`` says what a round pays. ``wealth/`` is the wealth of bets and the thresholds it certifies, ``ledgers/``
sums of losses that do not depend on the order of rounds, ``bounds/`` confidence bounds, ``drift/`` the drift alarm.
"""
