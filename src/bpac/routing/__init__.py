"""The router and everything it needs. It is pure: no clock, file or socket, and no random source but the one passed in.

1. ``router/`` is what callers use: arrive, decide, observe. ``rule.py`` is the rule that decides a query.
2. ``route.py``, ``outcomes.py`` and ``epoch.py`` are the state of a router. It follows from its journal (``journal/``).
3. ``policies/`` say how a router bets, ``bettors/`` bet, ``exploration/`` says how often accepted drafts are audited.
4. ``tickets/`` keep the order in which queries arrive, ``coins.py`` are the random sources.
5. ``audit/`` checks an exported journal, ``checks.py`` checks a policy, ``segments.py`` keeps one router for each kind
   of traffic.
"""
