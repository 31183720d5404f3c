"""A store in memory, for tests and trials: its journals end with the process."""

import json
import secrets
from collections.abc import Iterator, Mapping
from typing import Any

from bpac.errors import StoreError
from bpac.routing.decision import Decision
from bpac.routing.journal.chain import next_head
from bpac.routing.journal.entries import Entry, Resolved
from bpac.stores.sqlite.writing.statements import entry_text
from bpac.stores.store import Archived, Claim, CoinKey, Game, Link, LostEntries, StoredEntry, StoredRound


class MemoryStore:
    """Journals in lists."""

    failure: StoreError | None = None

    def __init__(self) -> None:
        self.secret = secrets.token_bytes(16)
        self._games: list[Game] = []
        self._journals: dict[int, list[StoredEntry]] = {}
        self._links: dict[int, list[Link]] = {}
        self._keys: dict[int, list[CoinKey]] = {}
        self._decided: dict[int, list[StoredEntry]] = {}
        self._outcomes: dict[int, dict[int, StoredEntry]] = {}
        self._snapshots: dict[int, str] = {}
        self._claims: dict[int, list[Claim]] = {}

    def games(self) -> list[Game]:
        """Every game, in the order in which they were opened or last resumed."""
        return list(self._games)

    def resume(self, game: Game) -> None:
        """Note that a game goes on although later ones were opened."""
        self._games.remove(game)
        self._games.append(game)

    def open_game(self, route: str, segment: str, terms: str) -> Game:
        """Start a new game."""
        game = Game(len(self._games) + 1, route, segment, terms)
        self._games.append(game)
        self._journals[game.number], self._decided[game.number], self._claims[game.number] = [], [], []
        self._outcomes[game.number] = {}
        self._links[game.number], self._keys[game.number] = [], []
        return game

    def append(self, game: Game, entry: Entry, note: Mapping[str, Any]) -> None:
        """Append to a journal, without waiting."""
        if self.failure is not None:
            raise self.failure
        text = entry_text(entry)
        self._links[game.number].append(Link(text, next_head(self.head(game), text)))
        stored = StoredEntry(entry, dict(note))
        self._journals[game.number].append(stored)
        if isinstance(entry, Decision):
            self._decided[game.number].append(stored)
        elif isinstance(entry, Resolved):
            self._outcomes[game.number][entry.step] = stored

    async def durable(self) -> None:
        """Return at once."""

    def head(self, game: Game) -> bytes:
        """The head of a journal's hash chain."""
        links = self._links[game.number]
        return links[-1].head if links else game.head

    def links(self, game: Game) -> Iterator[Link]:
        """The entries of a journal as they would be written, with the hash chain."""
        return iter(self._links[game.number])

    def archived(self, game: Game) -> Archived | None:
        """None: nothing is archived."""
        return None

    def entries(self, game: Game, after: int = 0) -> Iterator[StoredEntry]:
        """The entries of a journal in order, without the first ``after``."""
        return iter(self._journals[game.number][after:])

    def decision(self, game: Game, step: int) -> Decision | None:
        """The decision of that step."""
        found = self.rounds(game, step + 1, 1) if step >= 1 else []
        decision = found[0].decided.entry if found else None
        return decision if isinstance(decision, Decision) and decision.step == step else None

    def rounds(self, game: Game, before: int | None = None, limit: int = 50) -> list[StoredRound]:
        """The latest rounds, newest first."""
        decided, outcomes = self._decided[game.number], self._outcomes[game.number]
        end = len(decided) if before is None else min(max(before - 1, 0), len(decided))
        start = max(end - limit, 0)
        found = zip(range(start + 1, end + 1), decided[start:end], strict=True)
        return [StoredRound(decision, outcomes.get(step)) for step, decision in found][::-1]

    def save_snapshot(self, game: Game, snapshot: Mapping[str, Any], claim: Claim) -> None:
        """Keep a snapshot in place of earlier ones, and a claim in addition to earlier ones."""
        number = len(self._links[game.number])
        if claim.entries != number:
            raise StoreError(f"a claim about {claim.entries} entries does not fit a journal of {number}")
        self._snapshots[game.number] = json.dumps(snapshot)
        self._claims[game.number].append(claim._replace(head=self.head(game).hex()))

    def snapshot(self, game: Game) -> dict[str, Any] | None:
        """The latest snapshot."""
        snapshot: dict[str, Any] | None = json.loads(self._snapshots.get(game.number, "null"))
        return snapshot

    def claims(self, game: Game) -> list[Claim]:
        """All claims, in order."""
        return list(self._claims[game.number])

    def keep_key(self, game: Game, key: CoinKey) -> None:
        """Keep the key of a block of coins."""
        self._keys[game.number].append(key)

    def key(self, game: Game, step: int) -> CoinKey | None:
        """The key of the block that a step belongs to; none if its coin does not come from a key."""
        return next((key for key in reversed(self._keys[game.number]) if key.first_step <= step), None)

    def losses(self) -> list[LostEntries]:
        """Always empty: memory loses everything or nothing."""
        return []

    def reopened(self) -> "MemoryStore":
        """Raise ``StoreError``: what was in memory is gone."""
        raise self.failure or StoreError("the store has not failed")

    def close(self) -> None:
        """Accept nothing more."""
        self.failure = StoreError("the store is closed")
