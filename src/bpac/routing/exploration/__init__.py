"""Exploration: how often the expert is called on accepted drafts.

``schedules.py`` has the schedules that depend on the step only, ``learned_rates.py`` those that learn from the traffic.
"""
