"""What a SQLite store contains when it is opened, and what is missing from it."""

import hashlib
from collections.abc import Mapping
from typing import NamedTuple

from bpac.errors import StoreError
from bpac.stores.sqlite.archives import Cut, read_cuts
from bpac.stores.sqlite.reading.checking import Read, damaged, head_at, typed
from bpac.stores.sqlite.writing.acknowledged import NEVER, Acknowledged, JournalEnd, lost_entries, read_acknowledged
from bpac.stores.store import UNKNOWN, Game, LostEntries

# The name, in the table of secrets, of the time at which a backup was made. Only a backup has it.
BACKUP_MARK = "backup"
LAST = "SELECT number, head FROM entries WHERE game = ? ORDER BY number DESC LIMIT 1"


class Contents(NamedTuple):
    """What a store contains.

    Parameters
    ----------
    secret: a random key that stays the same for the life of the store.
    games: in the order in which they were opened or last resumed.
    ends: where the journal of each game ends.
    losses: journals that do not contain what was acknowledged.
    new_losses: the losses that are not recorded in the store yet.
    acknowledged: what the file beside the store says.
    cuts: journals whose first entries are archived, by game.
    backup: when it was made, if this is a backup that no gateway has opened yet; otherwise empty.
    """

    secret: bytes
    games: list[Game]
    ends: Mapping[int, JournalEnd]
    losses: list[LostEntries]
    new_losses: list[LostEntries]
    acknowledged: Acknowledged
    cuts: Mapping[int, Cut]
    backup: str = ""

    @property
    def identity(self) -> bytes:
        """What identifies the store in the file beside it."""
        return _identity(self.secret)


def contents(read: Read, path: str) -> Contents:
    """What a store contains, or ``StoreError`` if it is damaged where that matters at once.

    Parameters
    ----------
    read: runs a query.
    path: of the store.
    """
    secret = _secret(read, path)
    # Before the journals are read, so that what is written in the meantime does not look like a loss.
    acknowledged = read_acknowledged(path, _identity(secret))
    cuts = read_cuts(read)
    games: list[Game] = []
    ends: dict[int, JournalEnd] = {}
    for *row, head in read("SELECT number, route, segment, terms, head FROM games ORDER BY number", ()):
        game = Game(*row)
        if not typed(row, (int, str, str, str)) or game.head != head:
            raise StoreError(f"{path} is damaged: game {game.number} is not as it was written")
        end = next((JournalEnd(*row) for row in read(LAST, (game.number,))), JournalEnd(0, game.head))
        if not typed(end, (int, bytes)):
            raise damaged(path, game)
        games.append(game)
        ends[game.number] = end
    last_used = _last_used(read)
    games.sort(key=lambda game: (last_used.get(game.number, 0), game.number))
    rows = read("SELECT game, entries, acknowledged, head FROM losses ORDER BY game, acknowledged", ())
    known = [LostEntries(*row) for row in rows if typed(row, (int, int, int, str))]
    # Entries that are archived were checked when they were cut.
    present = {
        game: end
        for game, end in acknowledged.ends.items()
        if game not in cuts or end.number > cuts[game].entries or end == NEVER
    }
    found = lost_entries(
        acknowledged._replace(ends=present),
        lambda game: ends[game].number if game in ends else 0,
        lambda *at: head_at(read, *at),
    )
    backup = _backup(read)
    if backup:
        # What was served after the backup is not known: entries may be missing unless the file shows the contrary.
        found += [
            LostEntries(game, end.number, UNKNOWN, end.head.hex())
            for game, end in ends.items()
            if end.number and game not in acknowledged.ends
        ]
    recorded = {(loss.game, loss.acknowledged) for loss in known}
    new = [loss for loss in found if (loss.game, loss.acknowledged) not in recorded]
    return Contents(secret, games, ends, known + new, new, acknowledged, cuts, backup)


def _backup(read: Read) -> str:
    for (made,) in read("SELECT value FROM secrets WHERE name = ?", (BACKUP_MARK,)):
        return made.decode("ascii", "replace") if isinstance(made, bytes) else "an unknown time"
    return ""


def _last_used(read: Read) -> dict[int, int]:
    """When each game was opened or resumed, as a number; earlier versions did not record it."""
    if not read("SELECT 1 FROM sqlite_master WHERE name = 'uses'", ()):
        return {}
    return dict(read("SELECT game, max(number) FROM uses GROUP BY game", ()))


def _secret(read: Read, path: str) -> bytes:
    for (secret,) in read("SELECT value FROM secrets WHERE name = 'decisions'", ()):
        if isinstance(secret, bytes):
            return secret
    raise StoreError(f"{path} is damaged: its secret is missing. Restore the file from a copy")


def _identity(secret: bytes) -> bytes:
    return hashlib.sha256(secret).digest()
