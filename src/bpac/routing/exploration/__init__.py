"""Exploration: how often the expert is called on accepted drafts.

``schedules.py`` has the schedules that depend on the step only, ``gain_schedules.py`` those that follow what there is
to gain, which ``learned_rates.py`` learns from the traffic.
"""
