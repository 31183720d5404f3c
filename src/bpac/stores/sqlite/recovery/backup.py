"""Backups of a SQLite store: a consistent copy, made while a gateway writes, that a gateway can start from.

1. The copy is one file, made by SQLite's own backup in one read transaction: it has everything that was committed at
   one moment, and the gateway goes on meanwhile.
2. The copy is marked as a backup. It has no file ``.head``: the one beside the store says what was acknowledged since.
3. Rounds that were decided after the copy was made are not in it. A game must not go on without them: the operator, or
   what broke the store, may have removed exactly the rounds with losses. So when a store is opened that is marked as a
   backup, a game goes on only if the file ``.head`` beside it shows that nothing is missing. All other games have lost
   entries, and new ones begin in their place.
4. The mark is removed when a gateway has opened the store and has recorded these losses.
"""

import os
import sqlite3
from contextlib import closing
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bpac.errors import InputError, StoreError
from bpac.output_files import whole_file
from bpac.stores.private_files import make_private, place_of
from bpac.stores.sqlite.reading.checking import quoted
from bpac.stores.sqlite.reading.contents import BACKUP_MARK
from bpac.stores.sqlite.reading.read_only import ReadOnlySqliteStore
from bpac.stores.sqlite.reading.reading import UNREADABLE
from bpac.stores.sqlite.writing.acknowledged import ENDING
from bpac.stores.sqlite.writing.connecting import connect
from bpac.stores.store import Game

MARK = f"INSERT OR REPLACE INTO secrets VALUES ('{BACKUP_MARK}', ?)"
# Files that only a store in use has beside it.
IN_USE = ("-wal", "-shm", ".lock", ENDING)


@dataclass(frozen=True, slots=True)
class JournalCopy:
    """A journal in a backup.

    Parameters
    ----------
    game, route, segment: the game.
    entries: how many entries it has.
    head: of its hash chain after the last one, as hexadecimal digits.
    """

    game: int
    route: str
    segment: str
    entries: int
    head: str


@dataclass(frozen=True, slots=True)
class Backup:
    """A backup that was made and checked.

    Parameters
    ----------
    file: its name.
    made: when, in UTC.
    size: in bytes.
    games: the journals in it.
    """

    file: str
    made: str
    size: int
    games: list[JournalCopy]

    def to_json(self) -> dict[str, Any]:
        """The same as JSON values."""
        return asdict(self)


def back_up(path: str, out: Path) -> Backup:
    """Copy a store to a file, and check every journal in the copy; if this raises, there is no new file.

    Parameters
    ----------
    path: of the store; a gateway may be using it.
    out: the file to write, which only its owner may read. A file that is a store in use is refused.
    """
    for ending in IN_USE:
        if os.path.lexists(f"{out}{ending}"):
            raise InputError(f"{out} looks like a store in use, because {out}{ending} exists: give another file")
    if out.is_dir() or (out.exists() and not out.is_file()):
        raise InputError(f"{out} is not a file that a backup can be written to: give another file")
    ReadOnlySqliteStore(path).close()  # says in plain words what is wrong with it
    make_private(place_of(str(out)), create=False)
    made = datetime.now(UTC).isoformat(timespec="seconds")
    with whole_file(out) as unfinished:
        unfinished.unlink(missing_ok=True)
        make_private(str(unfinished))
        try:
            _copy(place_of(path), str(unfinished), made)
            games = _checked(str(unfinished))
        except UNREADABLE as error:
            raise StoreError(f"{out} could not be written ({quoted(error)}): the store itself is as it was") from error
        finally:
            for ending in ("-wal", "-shm", "-journal"):
                Path(f"{unfinished}{ending}").unlink(missing_ok=True)
        size = unfinished.stat().st_size
    _to_disk(out.resolve().parent)
    return Backup(str(out), made, size, games)


def _copy(source: str, target: str, made: str) -> None:
    with closing(connect(source, read_only=True)) as reading, closing(connect(target)) as writing:
        reading.backup(writing)  # all pages in one step, so that commits in the meantime do not make it begin again
        writing.execute("PRAGMA journal_mode = DELETE")
        writing.execute("PRAGMA synchronous = FULL")
        writing.execute(MARK, (made.encode(),))
        (found,) = writing.execute("PRAGMA quick_check(1)").fetchone()
        if found != "ok":
            raise sqlite3.DatabaseError(found)


def _checked(path: str) -> list[JournalCopy]:
    """The journals in a file, after every entry was read along its hash chain."""
    with closing(ReadOnlySqliteStore(path)) as store:
        return [
            JournalCopy(game.number, game.route, game.segment, _length(store, game), store.head(game).hex())
            for game in store.games()
        ]


def _length(store: ReadOnlySqliteStore, game: Game) -> int:
    """The number of entries of a journal, each of which is read."""
    cut = store.contents.cuts.get(game.number)
    return (cut.entries if cut else 0) + sum(1 for _ in store.links(game))


def _to_disk(directory: Path) -> None:
    """Make a name in a directory survive a power failure."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
