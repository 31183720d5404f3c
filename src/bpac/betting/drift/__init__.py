"""Drift: noticing that a certified threshold is no longer safe.

``alarm.py`` is the alarm itself, ``drift.py`` adds what audits without a verdict could hide.
"""
