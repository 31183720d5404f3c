"""Seeded streams of every awkward kind: where losses come often enough to move a threshold both ways."""

import numpy as np

from tests.transcriptions import Row


def stream(kind: str, steps: int, seed: int = 1) -> list[Row]:
    """Rows of one of ``STREAMS``; the loss is likelier where the uncertainty is high."""
    dice = np.random.default_rng([seed, STREAMS.index(kind)])
    draws = dice.random(steps)
    scores = {
        "binary": draws,
        "graded": draws,
        "three levels": np.choose(dice.integers(0, 3, steps), [0.1, 0.5, 0.9]),
        "crowded near 0": draws**12,
        "on grid points": dice.integers(0, 1001, steps) / 1000,
    }[kind]
    rank = np.argsort(np.argsort(scores)) / steps
    losses = (dice.random(steps) < rank**4 * 0.6).astype(float)
    if kind == "graded":
        losses *= dice.choice([0.2, 0.5, 1.0], steps)
    return [Row(*map(float, row)) for row in zip(scores, losses, dice.random(steps), strict=True)]


STREAMS = ("binary", "graded", "three levels", "crowded near 0", "on grid points")


def drifting(steps: int, turn: int, seed: int = 1) -> list[Row]:
    """A stream that is easy up to row ``turn`` and loses nearly always after it."""
    dice = np.random.default_rng(seed)
    scores, draws, coins = dice.random((3, steps))
    return [
        Row(float(score), float(draw < (0.01 if row < turn else 0.9)), float(coin))
        for row, (score, draw, coin) in enumerate(zip(scores, draws, coins, strict=True))
    ]
