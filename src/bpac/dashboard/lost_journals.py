"""Journals that lost acknowledged entries, in words for an operator: what is missing, what it costs, what to do."""

from collections.abc import Iterable, Sequence
from typing import Any

from bpac.stores.store import Game, LostEntries

# Only so many journals are listed; the rest are counted.
MOST_LISTED = 20

COST = (
    "No record is left of the missing requests, and no certificate covers them. The rest of such a journal proves "
    "nothing any more, so its traffic starts a new game: the expert answers every request until it has warmed up."
)
REMEDY = (
    "Find out who deleted or replaced files of the store (the database, and its log that ends in -wal), or whether the "
    "machine lost power. If you have a complete copy of these files, keep it for auditors; or stop the gateway and put "
    "the copy back, but leave the file that ends in .head as it is: the old game then continues, and the requests "
    "served since are missing instead. With ?sync=full in the store's address, a power failure loses no acknowledged "
    "entry."
)


def lost_journals(
    losses: Sequence[LostEntries], games: Iterable[Game], played: Iterable[Game]
) -> dict[str, Any] | None:
    """The journals that lost entries, as JSON values; None if no journal did.

    Parameters
    ----------
    losses: the losses that the store found.
    games: all games of the store.
    played: the games that serve traffic now.

    >>> first, second = Game(1, "homework", "", "terms"), Game(2, "homework", "", "terms")
    >>> lost = lost_journals([LostEntries(1, 7, 12, "")], [first, second], [second])
    >>> lost["journals"][0]["text"], lost["journals"][0]["now"]
    ('the last 5 of 12 acknowledged entries of game 1 are missing', 'game 2 continues in its place')
    """
    if not losses:
        return None
    named = {game.number: game for game in games}
    current = {(game.route, game.segment): game.number for game in played}
    # The latest first: the others were there before.
    listed = [
        _journal(loss, named.get(loss.game), current)
        for loss in sorted(losses, key=lambda loss: loss.game, reverse=True)[:MOST_LISTED]
    ]
    return {"count": len(losses), "journals": listed, "cost": COST, "remedy": REMEDY}


def _journal(loss: LostEntries, game: Game | None, current: dict[tuple[str, str], int]) -> dict[str, Any]:
    document: dict[str, Any] = {**loss._asdict(), "text": str(loss)}
    if game is None:
        return document | {
            "route": None,
            "segment": "",
            "now": "the whole journal is missing, including the name of its route",
        }
    number = current.get((game.route, game.segment))
    if number is None:
        now = "no game serves this traffic now"
    elif number > loss.game:
        now = f"game {number} continues in its place"
    else:
        now = f"game {number} serves this traffic now"
    return document | {"route": game.route, "segment": game.segment, "now": now}
