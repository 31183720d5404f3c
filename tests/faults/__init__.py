"""Faults under load: processes are killed, stopped and cut off while callers ask, and the books are checked after each.

``python -m tests.faults`` prints a table; the short version is one of the tests.
"""
