"""The latest rounds of a SQLite journal, read backwards along its indexes."""

from bpac.stores.sqlite.checking import Read, read_entry, read_json
from bpac.stores.store import Game, Kept, KeptRound

# The largest whole number that SQLite knows.
MOST = (1 << 63) - 1
DECIDED = "SELECT step, entry, note FROM entries WHERE game = ? AND step < ? ORDER BY step DESC LIMIT ?"
# Between two steps; of a round that has several outcomes the latest comes last.
RESOLVED = """
    SELECT json_extract(entry, '$.step'), entry, note FROM entries
    WHERE game = ? AND step IS NULL AND json_extract(entry, '$.step') BETWEEN ? AND ?
    ORDER BY json_extract(entry, '$.step'), number
"""


def latest_rounds(read: Read, game: Game, before: int | None, limit: int, path: str) -> list[KeptRound]:
    """The latest rounds, newest first.

    Parameters
    ----------
    read: answers a query.
    game: which journal.
    before: only rounds with a step below this.
    limit: how many at most.
    path: of the store, for errors.
    """
    decided = read(DECIDED, (game.number, MOST if before is None else min(before, MOST), limit))
    if not decided:
        return []
    resolved = read(RESOLVED, (game.number, decided[-1][0], decided[0][0]))

    def kept(entry: str, note: str) -> Kept:
        return Kept(read_entry(entry, game, path), read_json(note, game, path))

    outcomes = {step: kept(entry, note) for step, entry, note in resolved}
    return [KeptRound(kept(entry, note), outcomes.get(step)) for step, entry, note in decided]
