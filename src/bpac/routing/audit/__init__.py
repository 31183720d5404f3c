"""Audits: checking an exported journal, with nothing but the journal.

``audit.py`` reads the lines and compares, ``terms.py`` computes thresholds and probabilities again, ``coins.py`` the
coins.
"""
