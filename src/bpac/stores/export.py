"""Exports from a store that may be in use: a journal for auditors, or a table for replays."""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

from bpac.errors import InputError, StoreError
from bpac.routing.coins import key_digest
from bpac.routing.decision import Decision
from bpac.routing.journal.chain import with_head
from bpac.routing.journal.entries import ARCHIVED, CLAIM, REVEALED, Committed, Entry, Resolved
from bpac.routing.journal.entry_lines import entry_from_json
from bpac.routing.journal.past_game import past_of
from bpac.stores.store import Archived, Claim, Game, Link, Store


def chosen_game(store: Store, route: str | None, segment: str | None, number: int | None = None) -> Game:
    """The one game that is meant, or an error that lists the games.

    Parameters
    ----------
    store: where the journals are.
    route, segment: those of the game; not needed if there is only one. If several games match, the latest is used.
    number: of the game, to choose an earlier one (default: none, the latest).
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


def journal_lines(store: Store, game: Game, upto: int | None = None) -> Iterator[str]:
    """The journal of a game, one entry per line, each with the head of the hash chain.

    Between the entries are, for auditors, the claims of the gateway and the keys of the coins whose block has ended.
    If the first entries are archived, a line that says so takes the place of the line that names the game.

    Parameters
    ----------
    store, game: where the journal is.
    upto: the number of the last entry (default: all entries).
    """
    archived, claims, links = _begun(store, game)
    block = begun_block(archived.block) if archived else None
    yield with_head(game.text, game.head) if archived is None else _archived_line(archived)
    first = 1 if archived is None else archived.entries + 1
    for number, (text, head) in enumerate(links if upto is None else islice(links, upto + 1 - first), start=first):
        yield with_head(text, head)
        if (begun := begun_block(text)) is not None:
            if block is not None:
                yield from _revealed(store, game, block)
            block = begun
        while claims and claims[0].entries <= number:
            yield _claim_line(claims.pop(0))


def _begun(store: Store, game: Game) -> tuple[Archived | None, list[Claim], Iterator[Link]]:
    """What is archived, claims and entries of a journal, as they are at one moment: a gateway may archive meanwhile."""
    while True:
        archived, claims, links = store.archived(game), store.claims(game), iter(store.links(game))
        try:
            first = list(islice(links, 1))  # from here on it is fixed where the entries begin
        except StoreError:
            if store.archived(game) == archived:
                raise
            continue
        if store.archived(game) == archived:
            return archived, claims, chain(first, links)


def begun_block(text: str) -> Committed | None:
    """The block of coins that an entry begins; none if it is an entry of another kind."""
    entry = entry_from_json(text) if text.startswith('{"entry":"committed"') else None
    return entry if isinstance(entry, Committed) else None


def _archived_line(archived: Archived) -> str:
    values = {"entry": ARCHIVED, "head": archived.head.hex(), "entries": archived.entries, "file": archived.file}
    return json.dumps(values, separators=(",", ":"))


def _claim_line(claim: Claim) -> str:
    values = {"entry": CLAIM, "entries": claim.entries, "head": claim.head, **claim.values}
    return json.dumps(values, separators=(",", ":"))


def _revealed(store: Store, game: Game, block: Committed) -> Iterator[str]:
    """The key of a block that has ended, if it is the one that was committed to."""
    found = store.key(game, block.first_step)
    if found is not None and key_digest(found.key) == block.digest:
        values = {"entry": REVEALED, "first_step": block.first_step, "key": found.key.hex()}
        yield json.dumps(values, separators=(",", ":"))


@dataclass(slots=True)
class GradedRounds:
    """The audited rounds of a game as rows of a table, and what is not known about them.

    Parameters
    ----------
    rows: the rounds, in order of arrival.
    graded: the number of rounds with a known loss.
    given_up: rounds whose outcome will not come; their rows have a loss of 1.
    interrupted: requests that were, or may have been, under way when a process ended or when this was read, of which
        the first of each time counts; and those that nobody decided in time. Each has a row with a loss of 1 at
        uncertainty 0.
    refused: rounds in which the expert refused to answer; they have no row.
    cut: whether the table ends at a round whose outcome has not come yet; its row has a loss of 1.
    left_out: audited rounds after that one; they have no row.
    least_propensity: the least probability with which a draft was audited; at 1, the audited rounds are all rounds.
    """

    rows: list[dict[str, Any]]
    graded: int = 0
    given_up: int = 0
    interrupted: int = 0
    refused: int = 0
    cut: bool = False
    left_out: int = 0
    least_propensity: float = 1.0

    def unknown(self) -> str:
        """How many outcomes are not known, and how they are treated; empty if all are known."""
        counts = {
            "given up and counted as loss 1": self.given_up,
            "never decided, or perhaps under way when the journal ended, and counted as loss 1": self.interrupted,
            "refused by the expert and left out": self.refused,
            "still open, where the table ends, and counted as loss 1": int(self.cut),
            "after that one and left out": self.left_out,
        }
        return ", ".join(f"{count} {why}" for why, count in counts.items() if count)


def table_rows(store: Store, game: Game, *, all_audits: bool = False, seed: int = 0) -> GradedRounds:
    """The rounds of a game in which the expert was asked, as rows of a table for replays and warm starts.

    The expert is always asked for uncertain drafts and seldom for certain ones. So each round gets a row with a
    probability such that all rounds of the traffic are equally likely to be in the table. Rounds that were given up
    count as loss 1, as they do for the promise. Rounds must not be chosen by how long they take: the table ends at the
    first round, in order of arrival, whose outcome has not come yet, and that one counts as loss 1 (MATH section 12).

    Parameters
    ----------
    store, game: where the journal is.
    all_audits: whether all audited rounds get a row, with their propensity (default: false). They are not a sample of
        the traffic.
    seed: random seed of the choice (default: 0).
    """
    notes: dict[int, dict[str, Any]] = {}
    least = 1.0

    def entries() -> Iterator[Entry]:
        nonlocal least
        for entry, note in store.entries(game):
            if isinstance(entry, Decision):
                least = min(least, entry.least_propensity)
                notes[entry.step] = {"draft_tokens": note.get("draft_tokens"), "expert_tokens": None}
            elif isinstance(entry, Resolved) and "expert_tokens" in note:
                notes[entry.step]["expert_tokens"] = note["expert_tokens"]
            yield entry

    found = GradedRounds([])
    draws = random.Random(seed)
    for round_ in past_of(entries()).rounds:
        decision = round_.decision
        if round_.kept:
            continue
        if found.cut:
            found.left_out += decision is not None
        elif round_.refused:
            # A thinned table is then a sample of the requests that the expert answers.
            found.refused += 1
        elif decision is None:
            found.interrupted += 1
            nothing = {"step": 0, "uncertainty": 0.0, "loss": 1.0, "propensity": 1.0}
            found.rows.append(nothing | {"draft_tokens": 0, "expert_tokens": 0})
        else:
            found.cut = round_.is_open
            known = round_.outcome is not None and round_.outcome.loss is not None
            found.graded += known
            found.given_up += not known and not found.cut
            if all_audits or found.cut or draws.random() < least / decision.propensity:
                row = {"step": decision.step, "uncertainty": decision.own_score, "loss": round_.loss}
                tokens = {name: count or 0 for name, count in notes[decision.step].items()}
                found.rows.append(
                    row | {"propensity": decision.propensity} | (tokens if found.cut else notes[decision.step])
                )
    found.least_propensity = least
    if not all_audits:
        for row in found.rows:
            del row["propensity"]
    return found


def complete_columns(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows without the columns that some of them lack: a table has a column for all rows or for none."""
    lacking = {name for row in rows for name, value in row.items() if value is None}
    return [{name: value for name, value in row.items() if name not in lacking} for row in rows]
