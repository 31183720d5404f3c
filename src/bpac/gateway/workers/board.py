"""Memory that all processes of a gateway share: a beat and the number of connections of each."""

import mmap
import os
import struct
from collections.abc import Iterator

_SLOT = struct.Struct("=QQ")


class Board:
    """One slot for each front, and a last one for the owner.

    Parameters
    ----------
    descriptor: of the memory; none to make a new one.
    slots: the number of processes.

    >>> board = Board(slots=3)
    >>> board.write(1, beat=7, connections=5)
    >>> board.connections(1), board.beat(1), board.total(2)
    (5, 7, 5)
    """

    def __init__(self, descriptor: int | None = None, *, slots: int) -> None:
        if descriptor is None:
            descriptor = os.memfd_create("bpac-board")
            os.ftruncate(descriptor, slots * _SLOT.size)
        self.descriptor = descriptor
        self.slots = slots
        self._memory = mmap.mmap(descriptor, slots * _SLOT.size)

    def write(self, slot: int, *, beat: int, connections: int) -> None:
        """Say that a process is alive, and how many connections it has."""
        _SLOT.pack_into(self._memory, slot * _SLOT.size, beat, connections)

    def beat(self, slot: int) -> int:
        """A number that changes while a process is alive."""
        return int(_SLOT.unpack_from(self._memory, slot * _SLOT.size)[0])

    def connections(self, slot: int) -> int:
        """How many connections a process has."""
        return int(_SLOT.unpack_from(self._memory, slot * _SLOT.size)[1])

    def total(self, fronts: int) -> int:
        """The connections of the first so many processes."""
        return sum(map(self.connections, range(fronts)))


class SharedConnections:
    """The connections of all fronts, counted.

    Parameters
    ----------
    board: what the fronts say.
    fronts: how many there are.
    """

    def __init__(self, board: Board, fronts: int) -> None:
        self._board = board
        self._fronts = fronts

    def __len__(self) -> int:
        return self._board.total(self._fronts)

    def __iter__(self) -> Iterator[int]:
        return map(self._board.connections, range(self._fronts))
