"""Estimates shown beside the facts: requests still needed, wealth by threshold, other limits."""
