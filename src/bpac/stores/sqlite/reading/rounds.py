"""The latest rounds of a SQLite journal, read backwards along its indexes."""

from bpac.stores.sqlite.reading.checking import Read, read_entry, read_json
from bpac.stores.store import Game, StoredEntry, StoredRound

# The largest integer of SQLite.
MOST = (1 << 63) - 1
DECIDED = "SELECT step, entry, note FROM entries WHERE game = ? AND step < ? ORDER BY step DESC LIMIT ?"
# Between two steps; if a round has several outcomes, the latest comes last.
RESOLVED = """
    SELECT json_extract(entry, '$.step'), entry, note FROM entries
    WHERE game = ? AND step IS NULL AND json_extract(entry, '$.step') BETWEEN ? AND ?
    ORDER BY json_extract(entry, '$.step'), number
"""


def latest_rounds(read: Read, game: Game, before: int | None, limit: int, path: str) -> list[StoredRound]:
    """The latest rounds, newest first.

    Parameters
    ----------
    read: runs a query.
    game: which journal.
    before: only rounds with a step below this; none for the latest.
    limit: the largest number of rounds.
    path: of the store, for errors.
    """
    decided = read(DECIDED, (game.number, MOST if before is None else min(before, MOST), limit))
    if not decided:
        return []
    resolved = read(RESOLVED, (game.number, decided[-1][0], decided[0][0]))

    def stored(entry: str, note: str) -> StoredEntry:
        return StoredEntry(read_entry(entry, game, path), read_json(note, game, path))

    outcomes = {step: stored(entry, note) for step, entry, note in resolved}
    return [StoredRound(stored(entry, note), outcomes.get(step)) for step, entry, note in decided]
