"""The last acknowledged entry of each game, noted beside a store, so that a journal that lost its end is found out.

A file of short lines, all of the same length: line 0 says which store it belongs to, line N is about game N. Each has a
number (of the entry), the head of the hash chain there, and a check sum. It is written after each commit, before those
who wait for the commit are answered, and without waiting for the disk. So it is found out if the end of a journal is
missing because its log was deleted or an older copy was put back. A power failure can take the last moments of the
journal and of this file alike, unless commits wait for the disk.
"""

import logging
import os
import re
import zlib
from binascii import hexlify
from collections.abc import Callable, Mapping
from typing import NamedTuple

from bpac.errors import StoreError
from bpac.stores.private_files import open_private
from bpac.stores.store import LostEntries

log = logging.getLogger("bpac.stores")

ENDING = ".head"
FORMAT = 1
_LINE = re.compile(rb" *(\d+) ([0-9a-f]{64}) ([0-9a-f]{8})\n")
_LENGTH = 20 + 1 + 64 + 1 + 8 + 1


class End(NamedTuple):
    """Where a journal ends.

    Parameters
    ----------
    number: of the last entry.
    head: of the hash chain after it.
    """

    number: int
    head: bytes


class Notes(NamedTuple):
    """What was noted beside a store.

    Parameters
    ----------
    ends: the last acknowledged entry of each game.
    doubt: why nothing is known of some games or of all; empty if there is no doubt.
    missing: whether nothing was noted at all, as beside a new store.
    """

    ends: Mapping[int, End]
    doubt: str
    missing: bool = False


def read_notes(path: str, identity: bytes) -> Notes:
    """What was noted beside the store at a path.

    Parameters
    ----------
    path: of the store.
    identity: of the store, so that notes about another one are not taken for its own.
    """
    name = path + ENDING
    try:
        with open(name, "rb") as file:
            data = file.read()
    except OSError as error:
        return Notes({}, f"{name} cannot be read ({error.strerror})", isinstance(error, FileNotFoundError))
    lines = [data[at : at + _LENGTH] for at in range(0, len(data), _LENGTH)]
    ends = {game: _read(game, line) for game, line in enumerate(lines) if line.strip(b"\0")}
    first = ends.pop(0, None)
    if first is None or first.number != FORMAT:
        return Notes({}, f"{name} is damaged or of another version")
    if first.head != identity:
        return Notes({}, f"{name} is about another store")
    damaged = sorted(game for game, end in ends.items() if end is None)
    doubt = f"{name} is damaged where it is about game {', '.join(map(str, damaged))}" if damaged else ""
    return Notes({game: end for game, end in ends.items() if end is not None}, doubt)


def losses(notes: Notes, end_of: Callable[[int], int], head_of: Callable[[int, int], object]) -> list[LostEntries]:
    """The journals that do not hold what was noted.

    Parameters
    ----------
    notes: read before the journals are: what is written in the meantime is then no loss.
    end_of: how many entries a game has.
    head_of: the head of the hash chain at an entry of a game; anything else if there is none.
    """
    return [
        LostEntries(game, end_of(game), end.number, end.head.hex())
        for game, end in notes.ends.items()
        if head_of(game, end.number) != end.head
    ]


class Noting:
    """Keeps the notes beside a store that this process owns.

    Parameters
    ----------
    path: of the store.
    identity: of the store.
    ends: where its journals end now.
    """

    def __init__(self, path: str, identity: bytes, ends: Mapping[int, End]) -> None:
        self._name = path + ENDING
        self._failed = False
        self._descriptor = open_private(self._name)
        try:
            lines = {0: End(FORMAT, identity), **{game: end for game, end in ends.items() if end.number}}
            whole = b"".join(
                _line(game, lines[game]) if game in lines else bytes(_LENGTH) for game in range(max(lines) + 1)
            )
            os.pwrite(self._descriptor, whole, 0)
            os.ftruncate(self._descriptor, len(whole))
        except OSError as error:
            raise StoreError(
                f"{self._name} cannot be written ({error.strerror}): give the store another place"
            ) from error

    def note(self, game: int, end: End) -> None:
        """Note the last entry of a game, which is kept for good."""
        if self._failed:
            return
        try:
            os.pwrite(self._descriptor, _line(game, end), game * _LENGTH)
        except OSError as error:
            # The journal itself is not harmed; what is noted is older than it, which is no loss.
            self._failed = True
            log.error("%s cannot be written: a lost end of the journal would go unnoticed", self._name, exc_info=error)

    def close(self) -> None:
        """Let go of the file."""
        self._failed = True
        os.close(self._descriptor)


def _line(game: int, end: End) -> bytes:
    # Which line it is and its number count in the check sum, too.
    check_sum = zlib.crc32(end.head, (end.number << 12 ^ game) & 0xFFFFFFFF)
    return b"%20d %b %08x\n" % (end.number, hexlify(end.head), check_sum)


def _read(game: int, line: bytes) -> End | None:
    found = _LINE.fullmatch(line)
    if found is None or _line(game, end := End(int(found[1]), bytes.fromhex(found[2].decode()))) != line:
        return None
    return end
