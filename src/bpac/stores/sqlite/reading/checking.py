"""Reading a SQLite journal along its hash chain, so that changes since it was written are detected."""

import hashlib
import json
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from bpac.errors import JournalError, StoreError
from bpac.routing.journal.chain import next_head
from bpac.routing.journal.entries import Entry
from bpac.routing.journal.entry_lines import entry_from_json
from bpac.stores.sqlite.recovery.causes import DAMAGED
from bpac.stores.sqlite.writing.statements import step_of
from bpac.stores.store import Game, Link, StoredEntry

Read = Callable[[str, tuple[Any, ...]], list[Any]]

ENTRIES = """
    SELECT number, step, entry, note, head, note_check FROM entries WHERE game = ? AND number > ?
    ORDER BY number LIMIT 5000
"""


def checked_entries(
    read: Read, game: Game, after: int, least: int, path: str, *, head: object = None
) -> Iterator[tuple[StoredEntry, Link]]:
    """The entries of a journal in order, or ``StoreError`` at the first that is not as it was written.

    Parameters
    ----------
    read: runs a query.
    game: which journal.
    after: how many entries to skip.
    least: how many entries there must be.
    path: of the store, for errors.
    head: of the hash chain after the entries to skip, if these were cut from the store (default: it is looked up).
    """
    if head is None:
        head = head_at(read, game.number, after) if after else game.head
    # In portions: a long read would keep the write-ahead log from being moved into the file.
    while rows := read(ENTRIES, (game.number, after)):
        for number, step, text, note, kept_head, note_check in rows:
            after += 1
            if number != after or not isinstance(text, str) or not isinstance(head, bytes):
                raise damaged(path, game, after)
            head = next_head(head, text)
            if head != kept_head:
                raise damaged(path, game, after)
            entry = read_entry(text, game, path, after)
            if step != step_of(entry) or not isinstance(note, str) or zlib.crc32(note.encode()) != note_check:
                raise damaged(path, game, after)
            yield StoredEntry(entry, json.loads(note)), Link(text, head)
    if after < least:
        raise damaged(path, game, after + 1)


def head_at(read: Read, game: int, number: int) -> object:
    """The head of the hash chain at an entry; none if there is no such entry."""
    return next(
        (head for (head,) in read("SELECT head FROM entries WHERE game = ? AND number = ?", (game, number))), None
    )


def read_entry(text: object, game: Game, path: str, number: int | None = None) -> Entry:
    """The entry in a column, or ``StoreError``."""
    try:
        return entry_from_json(text if isinstance(text, str) else "")
    except JournalError as error:
        raise damaged(path, game, number) from error


def read_json(text: object, game: Game, path: str) -> Any:
    """The JSON value in a column, or ``StoreError``."""
    try:
        return json.loads(text if isinstance(text, str) else "")
    except (ValueError, RecursionError) as error:
        raise damaged(path, game) from error


def seal(head: object, text: str) -> bytes:
    """A hash that ties a snapshot to the entry of the journal after which it was taken."""
    return hashlib.sha256((head if isinstance(head, bytes) else b"") + text.encode()).digest()


def typed(values: Iterable[object], types: tuple[type, ...]) -> bool:
    """Whether the values of columns have the types that were written."""
    return all(isinstance(value, kind) for value, kind in zip(values, types, strict=True))


def quoted(error: BaseException) -> str:
    """The message of SQLite in one line of printable characters: it may contain data that could not be read."""
    return "".join(letter if letter.isprintable() else "?" for letter in str(error)[:200])


def damaged(path: str, game: Game, number: int | None = None) -> StoreError:
    """The error of a journal that is not as it was written."""
    where = "a row" if number is None else f"entry {number}"
    return StoreError(
        f"{path} is damaged: {where} of game {game.number} ({game.route!r}) is not as it was written. Restore the file "
        "from a copy, or give the store another one, with which new games begin",
        cause=DAMAGED.what,
        remedy=DAMAGED.remedy,
    )
