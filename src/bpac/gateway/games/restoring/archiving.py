"""Retention: old entries of a journal are moved to an archive, which is an exported journal that can be audited.

1. Entries are cut behind a snapshot only, so a restart needs none of them. The state after the last one that is cut is
   computed from the journal and kept in their place, in case a later snapshot is damaged.
2. That state is checked before anything is cut: from it, the rest of the journal must lead to the same state as the
   whole journal does, to the same bits.
3. Rounds whose outcome is open, and all entries after the first of them, stay: their outcome is still to come.
4. The archive is on the disk, and was read back and compared, before the entries are cut in one commit. After a crash
   the entries are in the store, or in the archive, or in both.
5. An audit of the archives and of an export of what is left, in this order, is an audit of the whole journal.
"""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from bpac.errors import StoreError
from bpac.gateway.games.restoring.restoring import OneJournal, has_entries, state_after
from bpac.output_files import whole_file
from bpac.routing.decision import Decision
from bpac.stores.export import begun_block, journal_lines
from bpac.stores.line_files import read_lines, write_lines
from bpac.stores.store import Archived, Game, Store


@dataclass(frozen=True, slots=True)
class Archive:
    """Entries that were moved to a file.

    Parameters
    ----------
    game: the game whose journal they are from.
    file: the file.
    first, last: numbers of the first and the last entry.
    head: of the hash chain after the last one, as hexadecimal digits.
    """

    game: Game
    file: str
    first: int
    last: int
    head: str

    def to_json(self) -> dict[str, Any]:
        """The same as JSON values."""
        game = {"game": self.game.number, "route": self.game.route, "segment": self.game.segment}
        return game | {"file": self.file, "first": self.first, "last": self.last, "head": self.head}


class ArchivableStore(OneJournal, Store, Protocol):
    """A store whose journals can be cut."""

    @property
    def path(self) -> str:
        """What the store is called in messages."""

    def length(self, game: Game) -> int:
        """The number of entries of a journal, those archived included."""

    def number_of_step(self, game: Game, step: int) -> int:
        """The number of the entry that decides a step."""

    def cut(self, game: Game, archived: Archived) -> None:
        """Cut the first entries of a journal, which are in an archive."""


def archive_game(
    store: ArchivableStore, game: Game, directory: Path, keep: int, ending: str = ".jsonl"
) -> Archive | None:
    """Move the old entries of a journal to a file; None if there are none. If this raises, nothing was cut.

    Parameters
    ----------
    store: in SQLite, opened with ``commit_each``, and no gateway is using it; or in Redis, also while gateways run.
    game: the game.
    directory: where the file is written.
    keep: the number of latest entries that stay in the store, at least 1.
    ending: of the file's name: ``.jsonl`` (default) or ``.parquet``.
    """
    before = store.archived(game)
    first = 1 if before is None else before.entries + 1
    length = store.length(game)
    last = _last_to_cut(store, game, length, keep) if has_entries(store, game) else 0
    if last < first:
        return None
    head, block = _head_and_block(store, game, first, last, "" if before is None else before.block)
    state: dict[str, Any] = json.loads(json.dumps(state_after(store, game, last)))
    name = f"game-{game.number}-entries-{first}-{last}-{head.hex()[:12]}{ending}"
    archived = Archived(last, head, state, block, name)
    _check_state(store, game, archived, length)
    _write(store, game, directory / name, last)
    store.cut(game, archived)
    return Archive(game, str(directory / name), first, last, head.hex())


def _last_to_cut(store: ArchivableStore, game: Game, length: int, keep: int) -> int:
    """The number of the last entry that is not needed any more; 0 if all are needed."""
    snapshot = store.snapshot(game)
    if snapshot is None:
        return 0
    last: int = min(length - max(keep, 1), snapshot["router"]["entries"])
    state = snapshot["router"]["state"]
    awaited = {Decision(*owed).step for owed in state["owed"]}
    oldest = min(awaited, default=None)
    if oldest is None:
        return last
    number = store.number_of_step(game, oldest)
    return min(last, number - 1)


def _head_and_block(store: ArchivableStore, game: Game, first: int, last: int, block: str) -> tuple[bytes, str]:
    """The head after an entry, and the latest entry up to it that began a block of coins."""
    for number, (text, head) in enumerate(store.links(game), start=first):
        if begun_block(text) is not None:
            block = text
        if number == last:
            return head, block
    raise StoreError(f"{store.path}: entry {last} of game {game.number} is missing")


def _check_state(store: ArchivableStore, game: Game, archived: Archived, upto: int) -> None:
    rest = state_after(_AfterCut(store, archived), game, upto)
    if json.dumps(rest, sort_keys=True) != json.dumps(state_after(store, game, upto), sort_keys=True):
        raise StoreError(
            f"{store.path}: the state of game {game.number} after entry {archived.entries} does not lead to the same "
            "state as its whole journal, so nothing is archived: report this as a bug"
        )


class _AfterCut:
    """A store as it will be after entries are cut, for reading one journal.

    Parameters
    ----------
    store: the store as it is.
    archived: what will be cut.
    """

    def __init__(self, store: ArchivableStore, archived: Archived) -> None:
        self._archived = archived
        self.entries = store.entries

    def archived(self, game: Game) -> Archived:
        """What will be cut."""
        return self._archived


def _write(store: ArchivableStore, game: Game, path: Path, last: int) -> None:
    """Write the archive, and compare what is on the disk with the store."""
    with whole_file(path) as unfinished:
        write_lines(Path(unfinished), journal_lines(store, game, last), path.suffix)
        written = read_lines(Path(unfinished), path.suffix)
        if not _equal((line.rstrip("\n") for line in written), journal_lines(store, game, last)):
            raise StoreError(f"{path} could not be read back as it was written: nothing was cut")
    directory = os.open(path.resolve().parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _equal(one: Iterator[str], other: Iterator[str]) -> bool:
    end = object()
    return all(next(other, end) == line for line in one) and next(other, end) is end
