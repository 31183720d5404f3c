"""Replays of cascades: tables with one set of columns per model, and what a cascade would have cost on them."""
