"""Random sources: one uniform draw for each step, the same whenever it is asked for."""

import secrets
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from bpac.errors import InputError

BLOCK = 2048


class Coins(Protocol):
    """A random source that can be asked again."""

    def draws(self, step: int) -> list[float]:
        """Numbers in [0, 1) for this step and some that follow it: the *last* of the list is this step's."""


class SeededCoins:
    """Draws that depend on the seed and the step only.

    A router rebuilt after a crash goes on with the draws it would have had, and never flips a
    coin for a new query that an earlier query has already shown.

    Parameters
    ----------
    seed: any whole number; none takes one from the operating system.

    >>> SeededCoins(7).draws(1000)[-1] == SeededCoins(7).draws(999)[-2]
    True
    """

    def __init__(self, seed: int | None = None) -> None:
        self._seed = secrets.randbits(128) if seed is None else seed % (1 << 128)

    def draws(self, step: int) -> list[float]:
        """Numbers in [0, 1) for this step and some that follow it: the last of the list is this step's."""
        block, index = divmod(step, BLOCK)
        # Blocks lie far apart in the generator's sequence, so that no two share a draw.
        generator = np.random.Generator(np.random.Philox(key=self._seed, counter=block << 64))
        rest: list[float] = generator.random(BLOCK)[index:][::-1].tolist()
        return rest


class ListedCoins:
    """Draws from a list, the first for step 1: the ``coin`` column of a table."""

    def __init__(self, draws: Sequence[float]) -> None:
        for row, draw in enumerate(draws, start=1):
            if not 0.0 <= draw < 1.0:
                raise InputError(f"coin {row} must lie in [0, 1), got {draw!r}")
        self._draws = draws

    def draws(self, step: int) -> list[float]:
        """The rest of the list, backwards."""
        if step > len(self._draws):
            raise InputError(f"there is no coin for step {step}: the list has {len(self._draws)}")
        return [float(draw) for draw in self._draws[: step - 2 if step > 1 else None : -1]]
