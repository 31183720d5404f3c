"""The file ``.head`` beside a store: the last acknowledged entry of each game, to detect a journal that lost its end.

The file has lines of equal length. Line 0 says which store it belongs to, line N is about game N. Each line has the
number of an entry, the head of the hash chain after it, and a check sum. A line is written after each commit, before
those who wait for the commit continue, and without waiting for the disk. So it is detected if the end of a journal is
missing because the write-ahead log was deleted or an older copy was put back. A power failure can lose the last moments
of the journal and of this file alike, unless commits wait for the disk.
"""

import logging
import os
import re
import zlib
from binascii import hexlify
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from bpac.errors import StoreError
from bpac.stores.private_files import open_private
from bpac.stores.sqlite.recovery.causes import cause_of
from bpac.stores.store import UNKNOWN, LostEntries

log = logging.getLogger("bpac.stores")

ENDING = ".head"
FORMAT = 1
_LINE = re.compile(rb" *(\d+) ([0-9a-f]{64}) ([0-9a-f]{8})\n")
_LENGTH = 20 + 1 + 64 + 1 + 8 + 1


class JournalEnd(NamedTuple):
    """Where a journal ends.

    Parameters
    ----------
    number: of the last entry.
    head: of the hash chain after it.
    """

    number: int
    head: bytes


# The end of a journal whose true end is not known, because it was restored from a backup: no journal ends like this.
NEVER = JournalEnd(UNKNOWN, bytes(32))


class Acknowledged(NamedTuple):
    """What the file beside a store says.

    Parameters
    ----------
    ends: the last acknowledged entry of each game.
    doubt: why the ends of some or all games are not known; empty if they are.
    missing: whether there is no file, as beside a new store.
    """

    ends: Mapping[int, JournalEnd]
    doubt: str
    missing: bool = False


def read_acknowledged(path: str, identity: bytes) -> Acknowledged:
    """What the file beside the store at a path says.

    Parameters
    ----------
    path: of the store.
    identity: of the store; a file with another identity belongs to another store.
    """
    name = path + ENDING
    try:
        with open(name, "rb") as file:
            data = file.read()
    except OSError as error:
        return Acknowledged({}, f"{name} cannot be read ({error.strerror})", isinstance(error, FileNotFoundError))
    lines = [data[at : at + _LENGTH] for at in range(0, len(data), _LENGTH)]
    ends = {game: _read(game, line) for game, line in enumerate(lines) if line.strip(b"\0")}
    first = ends.pop(0, None)
    if first is None or first.number != FORMAT:
        return Acknowledged({}, f"{name} is damaged or of another version")
    if first.head != identity:
        return Acknowledged({}, f"{name} is about another store")
    damaged = sorted(game for game, end in ends.items() if end is None)
    doubt = f"{name} is damaged where it is about game {', '.join(map(str, damaged))}" if damaged else ""
    return Acknowledged({game: end for game, end in ends.items() if end is not None}, doubt)


def lost_entries(
    acknowledged: Acknowledged, end_of: Callable[[int], int], head_of: Callable[[int, int], object]
) -> list[LostEntries]:
    """The journals that do not contain what was acknowledged.

    Parameters
    ----------
    acknowledged: read before the journals, so that what is written in the meantime does not look like a loss.
    end_of: the number of entries of a game.
    head_of: the head of the hash chain at an entry of a game; anything else if there is no such entry.
    """
    return [
        LostEntries(game, end_of(game), end.number, end.head.hex())
        for game, end in acknowledged.ends.items()
        if head_of(game, end.number) != end.head
    ]


def _to_note(ends: Mapping[int, JournalEnd], losses: Iterable[LostEntries]) -> dict[int, JournalEnd]:
    """What the file says from now on: the end of every journal, and of a journal that lost its end where that was.

    If it noted what is left of such a journal, the same copy could be put back once more and would look complete.

    Parameters
    ----------
    ends: where the journals end now.
    losses: journals that do not contain what was acknowledged.
    """
    noted = {game: end for game, end in ends.items() if end.number}
    for loss in sorted(losses, key=lambda loss: (loss.game, loss.acknowledged == UNKNOWN, loss.acknowledged)):
        known = loss.acknowledged != UNKNOWN
        noted[loss.game] = JournalEnd(loss.acknowledged, bytes.fromhex(loss.head)) if known else NEVER
    return noted


class AcknowledgedFile:
    """Writes the file beside a store that this process owns.

    Parameters
    ----------
    path: of the store.
    identity: of the store.
    ends: where its journals end now.
    losses: journals that do not contain what was acknowledged (default: none).

    Attributes
    ----------
    ends: the last durable entry of each journal, also if the file cannot be written.
    """

    def __init__(
        self, path: str, identity: bytes, ends: Mapping[int, JournalEnd], losses: Iterable[LostEntries] = ()
    ) -> None:
        self._name = path + ENDING
        self._failed = False
        self.ends = dict(ends)
        self._descriptor = open_private(self._name)
        try:
            lines = {0: JournalEnd(FORMAT, identity), **_to_note(ends, losses)}
            whole = b"".join(
                _line(game, lines[game]) if game in lines else bytes(_LENGTH) for game in range(max(lines) + 1)
            )
            os.pwrite(self._descriptor, whole, 0)
            os.ftruncate(self._descriptor, len(whole))
        except OSError as error:
            raise StoreError(
                f"{self._name} cannot be written ({error.strerror}): give the store another place"
            ) from error

    def update(self, game: int, end: JournalEnd) -> None:
        """Write the last entry of a game, which is durable."""
        self.ends[game] = end
        if self._failed:
            return
        try:
            os.pwrite(self._descriptor, _line(game, end), game * _LENGTH)
        except OSError as error:
            # The journal itself is intact. The file is older than the journal then, which does not look like a loss.
            self._failed = True
            cause = cause_of(error)
            log.error(
                "%s cannot be written: a lost end of the journal would go unnoticed",
                self._name,
                extra={"error": error.strerror, "cause": cause.what, "remedy": cause.remedy},
            )

    def close(self) -> None:
        """Close the file."""
        self._failed = True
        os.close(self._descriptor)


def _line(game: int, end: JournalEnd) -> bytes:
    # The check sum also covers the number of the entry and of the game.
    check_sum = zlib.crc32(end.head, (end.number << 12 ^ game) & 0xFFFFFFFF)
    return b"%20d %b %08x\n" % (end.number, hexlify(end.head), check_sum)


def _read(game: int, line: bytes) -> JournalEnd | None:
    found = _LINE.fullmatch(line)
    if found is None or _line(game, end := JournalEnd(int(found[1]), bytes.fromhex(found[2].decode()))) != line:
        return None
    return end
