"""Replays of recorded answers and simulations of made-up ones, with metrics, studies and figures of the results."""
