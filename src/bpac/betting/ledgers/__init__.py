"""Ledgers: sums of losses that follow the rounds in any order."""
