"""Wealth of betting strategies, and the thresholds it certifies."""
