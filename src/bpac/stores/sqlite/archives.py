"""Journals whose first entries were cut from a SQLite store after they were exported to an archive."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from bpac.errors import StoreError
from bpac.stores.sqlite.reading.checking import Read, seal
from bpac.stores.sqlite.writing.statements import Work
from bpac.stores.store import Archived, Game

ARCHIVE = "INSERT OR REPLACE INTO archived VALUES (?, ?, ?, ?, ?, ?, ?)"
CUT_ENTRIES = "DELETE FROM entries WHERE game = ? AND number <= ?"
CUT_CLAIMS = "DELETE FROM claims WHERE game = ? AND entries <= ?"


class Cut(NamedTuple):
    """Where the entries of a journal begin that are still in the store.

    Parameters
    ----------
    entries: how many were cut.
    head: of the hash chain after them.
    file: the archive that has the last of them.
    """

    entries: int
    head: bytes
    file: str


def read_cuts(read: Read) -> dict[int, Cut]:
    """The cut journals, by game."""
    if not read("SELECT 1 FROM sqlite_master WHERE name = 'archived'", ()):  # a store of an earlier version
        return {}
    return {game: Cut(*rest) for game, *rest in read("SELECT game, entries, head, file FROM archived", ())}


def read_archived(read: Read, game: Game, path: str) -> Archived | None:
    """What takes the place of the entries that were cut, or ``StoreError`` if it is damaged."""
    query = "SELECT entries, head, snapshot, seal, block, file FROM archived WHERE game = ?"
    for entries, head, text, sealed, block, file in read(query, (game.number,)):
        if not isinstance(text, str) or sealed != seal(head, text):
            raise StoreError(
                f"{path} is damaged: the state of game {game.number} after its {entries} archived entries is not as it "
                "was written. Restore the file from a copy"
            )
        return Archived(entries, head, json.loads(text), block, file)
    return None


def cutting(game: Game, archived: Archived) -> list[Work]:
    """The statements that cut the first entries of a journal; they must be committed together."""
    text = json.dumps(archived.snapshot)
    row: tuple[Any, ...] = (archived.entries, archived.head, text, seal(archived.head, text))
    return [
        (ARCHIVE, (game.number, *row, archived.block, archived.file)),
        (CUT_ENTRIES, (game.number, archived.entries)),
        (CUT_CLAIMS, (game.number, archived.entries)),
    ]


def refuse_archived(cuts: Mapping[int, Cut], game: Game, after: int) -> None:
    """Raise ``StoreError`` if entries after the first ``after`` were cut."""
    cut = cuts.get(game.number)
    if cut is not None and after < cut.entries:
        raise StoreError(
            f"the first {cut.entries} entries of game {game.number} are archived, the last of them in {cut.file}: this "
            "needs the whole journal, which is the archives and  bpac export  in one file"
        )
