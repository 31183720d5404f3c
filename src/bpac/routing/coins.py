"""Random sources: uniform draws for each step, the same every time they are computed.

The draw that decides whether the expert is called is the coin (``draws``). A second draw, independent of it, dithers
the score where that is asked for (``dithers``).
"""

import hashlib
import secrets
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from bpac.errors import InputError
from bpac.routing.journal.entries import Committed

BLOCK = 2048
# Rounds per secret key. Few, so that auditors need not wait long until a key is revealed; each commitment is one more
# entry in the journal.
COMMITTED_BLOCK = 256
KEY_BYTES = 32


class Coins(Protocol):
    """A random source that gives the same draw for the same step."""

    def draws(self, step: int) -> list[float]:
        """Numbers in [0, 1) for this step and some that follow it: the *last* of the list is this step's."""


@runtime_checkable
class DitheringCoins(Coins, Protocol):
    """A random source that can also dither scores."""

    def dithers(self, step: int) -> list[float]:
        """Numbers in [0, 1), independent of the coins, for this step and some that follow: the last is this step's.

        Steps below 0 are rows of history.
        """


class SeededCoins:
    """Draws that depend on the seed and the step only.

    A router rebuilt after a crash continues with the draws it would have had, and never uses a draw for a
    new query that an earlier query has already used.

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
        return self._block(step, 0)

    def dithers(self, step: int) -> list[float]:
        """Numbers of another part of the generator's sequence, which shares no draw with the coins."""
        return self._block(step, 1 << 192)

    def _block(self, step: int, part: int) -> list[float]:
        block, index = divmod(step, BLOCK)
        # Blocks lie far apart in the generator's sequence, so that no two share a draw; those of history are the last.
        counter = part + (block % (1 << 64) << 64)
        generator = np.random.Generator(np.random.Philox(key=self._seed, counter=counter))
        rest: list[float] = generator.random(BLOCK)[index:][::-1].tolist()
        return rest


class ListedCoins:
    """Draws from a list, the first for step 1: the ``coin`` column of a table.

    A list has no draws that dither scores: they are those of seed 0.
    """

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

    def dithers(self, step: int) -> list[float]:
        """The same numbers for every list."""
        return SeededCoins(0).dithers(step)


class CoinKeyStore(Protocol):
    """Where the secret keys of committed coins are kept, by the first step of their block; a ``dict`` will do."""

    def __setitem__(self, first_step: int, key: bytes, /) -> None:
        """Keep a key."""


class CommittedCoins:
    """Draws from secret keys, one for each block of rounds, whose digests stand in the journal before their first use.

    Without the key no coin can be predicted. When a block is over, its key can be shown to auditors, who compute every
    coin of it again. Each object begins a block of its own: a router that starts again never uses a coin a second time,
    not even if the end of its journal was lost after those coins were seen or their key was revealed.

    Parameters
    ----------
    keys: where the keys are kept; each is kept before its digest is written.

    >>> keys, entries = {}, []
    >>> from bpac import Router
    >>> decision = Router(epsilon=0.05, coins=CommittedCoins(keys), journal=entries.append).decide(0.3)
    >>> [type(entry).__name__ for entry in entries], entries[1].digest == key_digest(keys[1])
    (['Opened', 'Committed', 'Decision'], True)
    """

    def __init__(self, keys: CoinKeyStore | None = None) -> None:
        self._keys: CoinKeyStore = {} if keys is None else keys
        self._first_step = 0
        self._key = b""
        self._in_use = False
        # History is chosen by the operator, so there is nothing to commit to.
        self._of_history = SeededCoins()

    def commitment(self, step: int) -> Committed | None:
        """What must stand in the journal before the draws of this step are used; none if it is there already."""
        if self._in_use and self._first_step <= step < self._first_step + COMMITTED_BLOCK:
            return None
        if step != self._first_step or self._in_use:  # otherwise it was returned before, and could not be written
            key = secrets.token_bytes(KEY_BYTES)
            self._keys[step] = key
            self._first_step, self._key, self._in_use = step, key, False
        return Committed(step, key_digest(self._key))

    def draws(self, step: int) -> list[float]:
        """The draws of this step and of the rest of its block: the last of the list is this step's."""
        self._check(step)
        self._in_use = True
        return self._rest(block_of_draws(self._key), step)

    def dithers(self, step: int) -> list[float]:
        """The same for the draws that dither scores; rows of history have draws of their own."""
        if step < 1:
            return self._of_history.dithers(step)
        self._check(step)
        return self._rest(block_of_dithers(self._key), step)

    def _check(self, step: int) -> None:
        if not 0 <= step - self._first_step < COMMITTED_BLOCK or not self._key:
            raise InputError(f"no key was committed to for step {step}: write what commitment({step}) returns first")

    def _rest(self, block: list[float], step: int) -> list[float]:
        return block[: step - self._first_step - 1 if step > self._first_step else None : -1]


def key_digest(key: bytes) -> str:
    """What commits to a key: the SHA-256 of ``bpac coin key``, a zero byte and the key, as hexadecimal digits."""
    return hashlib.sha256(b"bpac coin key\0" + key).hexdigest()


def block_of_draws(key: bytes) -> list[float]:
    """The draws of a block, the first round's first.

    They are the SHAKE-256 of ``bpac coins``, a zero byte and the key, in pieces of eight bytes. Each piece is a number,
    least significant byte first; its upper 53 bits are the draw.
    """
    return _numbers(b"bpac coins\0" + key)


def block_of_dithers(key: bytes) -> list[float]:
    """The draws that dither the scores of a block: as ``block_of_draws``, with ``bpac dithers`` for ``bpac coins``."""
    return _numbers(b"bpac dithers\0" + key)


def _numbers(secret: bytes) -> list[float]:
    stream = hashlib.shake_256(secret).digest(8 * COMMITTED_BLOCK)
    draws: list[float] = ((np.frombuffer(stream, "<u8") >> np.uint64(11)) * 2.0**-53).tolist()
    return draws
