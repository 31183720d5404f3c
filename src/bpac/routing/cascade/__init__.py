"""Cascades of several models, the last of which is the reference (MATH section 15).

``rounds.py`` has what is recorded of a round, ``rules.py`` the stopping rules, ``walk.py`` a query on its way through
the models. ``policy.py`` and ``bettor.py`` bet on the thresholds of all rules at once, ``sample.py`` and ``fitting.py``
fit new rules, and ``router.py`` is the router.
"""
