"""Confidence bounds.

``certificate.py`` bounds the loss of the drafts that were served, ``unseen.py`` any sum that is seen only in part,
``fixed_sample.py`` a risk from data that is complete.
"""
