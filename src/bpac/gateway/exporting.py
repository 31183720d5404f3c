"""Exports: a journal for auditors, or a table for replays, out of a store that may be in use."""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bpac.errors import InputError
from bpac.routing.chain import with_head
from bpac.routing.coins import key_digest
from bpac.routing.decision import Decision
from bpac.routing.journal import CLAIM, REVEALED, Committed, Resolved, entry_from_json
from bpac.stores.store import Claim, Game, Store


def chosen_game(store: Store, route: str | None, segment: str | None, number: int | None = None) -> Game:
    """The one game that is meant, or an error that lists what there is.

    Parameters
    ----------
    store: where the journals are.
    route, segment: of the game; not needed where there is only one. The latest of several is meant.
    number: of the game, to choose an earlier one.
    """
    games = [
        game
        for game in store.games()
        if (route is None or game.route == route)
        and (segment is None or game.segment == segment)
        and (number is None or game.number == number)
    ]
    if len({(game.route, game.segment) for game in games}) == 1:
        return games[-1]
    there = ", ".join(f"{g.number}: {g.route} {g.segment!r}" for g in store.games()) or "none"
    raise InputError(f"--route, --segment and --game must choose one game; there are {there}")


def journal_lines(store: Store, game: Game) -> Iterator[str]:
    """The journal of a game, one entry a line, each with the head of the hash chain.

    Between them stand, for auditors, what its gateway claimed and the keys of the coins whose block of rounds is over.
    """
    claims = store.claims(game)
    block: Committed | None = None
    yield with_head(game.text, game.head)
    for number, (text, head) in enumerate(store.links(game), start=1):
        yield with_head(text, head)
        if text.startswith('{"entry":"committed"'):
            if block is not None:
                yield from _revealed(store, game, block)
            entry = entry_from_json(text)
            block = entry if isinstance(entry, Committed) else None
        while claims and claims[0].entries <= number:
            yield _claim_line(claims.pop(0))


def _claim_line(claim: Claim) -> str:
    said = {"entry": CLAIM, "entries": claim.entries, "head": claim.head, **claim.values}
    return json.dumps(said, separators=(",", ":"))


def _revealed(store: Store, game: Game, block: Committed) -> Iterator[str]:
    """The key of a block that is over, unless it is not the one that was committed to."""
    found = store.key(game, block.first_step)
    if found is not None and key_digest(found.key) == block.digest:
        said = {"entry": REVEALED, "first_step": block.first_step, "key": found.key.hex()}
        yield json.dumps(said, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class GradedRounds:
    """The rounds of a game as rows of a table, and what is not known of them.

    Parameters
    ----------
    rows: the rounds whose outcome has come or will not come, in order.
    graded: how many have come.
    open_rounds: rounds that wait for their outcome; they have no row.
    given_up: rounds whose outcome will not come; in their rows it is a loss of 1.
    """

    rows: list[dict[str, Any]]
    graded: int
    open_rounds: int
    given_up: int

    def unknown(self) -> str:
        """How many outcomes are not known, and what was made of them; empty if all are."""
        missing = {"still open and left out": self.open_rounds, "given up and counted as loss 1": self.given_up}
        return ", ".join(f"{count} {why}" for why, count in missing.items() if count)


def table_rows(store: Store, game: Game, *, thin: bool = False, seed: int = 0) -> GradedRounds:
    """The rounds of a game in which the expert was asked, as rows of a table for ``bpac replay``.

    That is always the case for unsure drafts, and seldom for sure ones. Rounds that were given up count as loss 1, as
    they do for the promise: without them the traffic would look easier than it was. Those still open are left out.

    Parameters
    ----------
    store, game: where the journal is.
    thin: keep a round with a probability such that every round of the traffic is as likely to be in the table.
    seed: of that choice.
    """
    least = 1.0
    rounds: dict[int, dict[str, Any]] = {}
    given_up: set[int] = set()
    for entry, note in store.entries(game):
        if isinstance(entry, Decision):
            least = min(least, entry.least_propensity)
            if entry.call_expert:
                rounds[entry.step] = {
                    "step": entry.step,
                    "uncertainty": entry.uncertainty,
                    "loss": None,  # still open
                    "propensity": entry.propensity,
                    "draft_tokens": note.get("draft_tokens"),
                    "expert_tokens": None,
                }
        elif isinstance(entry, Resolved) and entry.step in rounds:
            row = rounds[entry.step]
            row["loss"] = 1.0 if entry.loss is None else entry.loss
            row["expert_tokens"] = note.get("expert_tokens", row["expert_tokens"])
            # An outcome may still come after the round was given up.
            (given_up.add if entry.loss is None else given_up.discard)(entry.step)
    closed = [row for row in rounds.values() if row["loss"] is not None]
    draws = random.Random(seed)
    rows = [row for row in closed if not thin or draws.random() < least / row["propensity"]]
    return GradedRounds(rows, len(closed) - len(given_up), len(rounds) - len(closed), len(given_up))


def complete_columns(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows without the columns that some of them lack: a table knows a column for all rows or not at all."""
    lacking = {name for row in rows for name, value in row.items() if value is None}
    return [{name: value for name, value in row.items() if name not in lacking} for row in rows]
