"""Replays of recorded answers, simulations of random ones, and the metrics, studies and figures of both."""
