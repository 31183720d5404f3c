"""Exports: a journal for auditors, or a table for replays, out of a store that may be in use."""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bpac.errors import InputError
from bpac.routing.decision import Decision
from bpac.routing.journal import CLAIM, Resolved, entry_to_json
from bpac.stores.store import Game, Store


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
    """The journal of a game, one entry a line, and what its gateway claimed in between, as ``claim`` lines."""
    claims = store.claims(game)
    for number, (entry, _) in enumerate(store.entries(game), start=1):
        yield entry_to_json(entry)
        while claims and claims[0].entries <= number:
            claim = claims.pop(0)
            yield json.dumps({"entry": CLAIM, "entries": claim.entries, **claim.values}, separators=(",", ":"))


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
