"""Cascades of several models, the last of which is the reference (MATH section 15).

``rounds.py`` has what is recorded of a round, ``rules.py`` the stopping rules, ``walk.py`` a query on its way through
the models. ``policy.py``, ``bettor.py`` and ``booking.py`` bet on the thresholds of all rules at once,
``full_audits.py`` and ``fitting.py`` fit new rules, and ``router.py`` is the router.
"""
