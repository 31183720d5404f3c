"""The interface of stores, and the values that they keep."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, Protocol

from bpac.errors import StoreError
from bpac.routing.decision import Decision
from bpac.routing.journal.chain import game_text, next_head
from bpac.routing.journal.entries import Entry
from bpac.routing.router import Router


@dataclass(frozen=True, slots=True)
class Game:
    """One betting game: one journal.

    Parameters
    ----------
    number: its number in the store, from 1.
    route: the name of the route.
    segment: the segment of the traffic; empty if the route is not divided.
    terms: what the promise is about (models, score, loss, settings), as text. With other terms it is another game.
    """

    number: int
    route: str
    segment: str
    terms: str

    @property
    def text(self) -> str:
        """The first line of its journal."""
        return game_text(self.number, self.route, self.segment, self.terms)

    @property
    def head(self) -> bytes:
        """The head of its hash chain before the first entry."""
        return next_head(b"", self.text)


class StoredEntry(NamedTuple):
    """An entry of a journal, and a note: what is worth knowing about it without being part of the game.

    Parameters
    ----------
    entry: a decision, an outcome, or another entry.
    note: its time, counts of tokens and others, as JSON values.
    """

    entry: Entry
    note: Mapping[str, Any]


class Link(NamedTuple):
    """An entry as it is written, and the hash chain of its journal up to it (``bpac.routing.journal.chain``).

    Parameters
    ----------
    text: the entry as JSON, to the byte.
    head: the hash over it and everything before it.
    """

    text: str
    head: bytes


class StoredRound(NamedTuple):
    """A round of a journal.

    Parameters
    ----------
    decided: the decision.
    outcome: its latest outcome; none if it has none.
    """

    decided: StoredEntry
    outcome: StoredEntry | None


class Claim(NamedTuple):
    """What a gateway claimed about a game while it ran, for auditors to check.

    Parameters
    ----------
    entries: the number of entries in the journal at that time.
    values: threshold and certificate, as JSON values.
    head: of the hash chain at that time, as hexadecimal digits; the store fills it in.
    """

    entries: int
    values: Mapping[str, Any]
    head: str = ""

    @classmethod
    def of(cls, router: Router, entries: int) -> "Claim":
        """What is said of a router as it stands, after so many entries."""
        values = {"step": router.step, "threshold": router.threshold, "certificate": asdict(router.certificate())}
        return cls(entries, values)


class CoinKey(NamedTuple):
    """The secret key from which the coins of a block of rounds come.

    Parameters
    ----------
    first_step: the first round of the block, which ends where the block of the next key begins.
    key: secret until the block ends.
    """

    first_step: int
    key: bytes


class LostEntries(NamedTuple):
    """A journal that no longer contains what was acknowledged.

    Parameters
    ----------
    game: the number of its game.
    entries: the number of entries it has.
    acknowledged: the number of entries that were acknowledged. If it still has as many, they are not the same.
    head: of the hash chain after the acknowledged entries, as hexadecimal digits.
    """

    game: int
    entries: int
    acknowledged: int
    head: str

    def __str__(self) -> str:
        if self.entries >= self.acknowledged:
            return f"entry {self.acknowledged} of game {self.game} is not the one that was acknowledged"
        lost = self.acknowledged - self.entries
        return f"the last {lost} of {self.acknowledged} acknowledged entries of game {self.game} are missing"


class Store(Protocol):
    """Journals, and snapshots to start from.

    What is appended is *durable* once an awaited ``durable`` called after it has returned, and never before what was
    appended earlier. A store that has failed accepts nothing more: it then contains a prefix of what was appended, and
    a gateway must start again from there.
    """

    @property
    def secret(self) -> bytes:
        """A random key that stays the same for the life of the store."""

    @property
    def failure(self) -> StoreError | None:
        """Why nothing more can be written; none as long as the store works."""

    def reopened(self) -> "Store":
        """The same store, opened again after it failed; ``StoreError`` if it cannot prove that nothing was lost."""

    def games(self) -> list[Game]:
        """Every game, oldest first."""

    def open_game(self, route: str, segment: str, terms: str) -> Game:
        """Start a new game."""

    def append(self, game: Game, entry: Entry, note: Mapping[str, Any]) -> None:
        """Append to a journal, without waiting."""

    async def durable(self) -> None:
        """Wait until all that was appended so far is durable, or raise ``StoreError``."""

    def head(self, game: Game) -> bytes:
        """The head of a journal's hash chain after all that was appended so far."""

    def entries(self, game: Game, after: int = 0) -> Iterator[StoredEntry]:
        """The durable entries of a journal in order, without the first ``after``; ``StoreError`` if one is damaged."""

    def links(self, game: Game) -> Iterator[Link]:
        """The durable entries of a journal as they are written, with the hash chain."""

    def decision(self, game: Game, step: int) -> Decision | None:
        """The decision of that step, if it is durable."""

    def rounds(self, game: Game, before: int | None = None, limit: int = 50) -> list[StoredRound]:
        """The latest durable rounds, newest first, without reading the journal from its beginning.

        Parameters
        ----------
        game: which journal.
        before: only rounds with a step below this (default: none, the latest rounds).
        limit: the largest number of rounds (default: 50).
        """

    def save_snapshot(self, game: Game, snapshot: Mapping[str, Any], claim: Claim) -> None:
        """Keep a snapshot in place of earlier ones, and a claim in addition to earlier ones.

        Both are about the journal as it is now: ``StoreError`` if the claim is about fewer or more entries.
        """

    def snapshot(self, game: Game) -> dict[str, Any] | None:
        """The latest durable snapshot; ``SnapshotError`` if it is damaged or not of this journal."""

    def claims(self, game: Game) -> list[Claim]:
        """All claims, in order."""

    def keep_key(self, game: Game, key: CoinKey) -> None:
        """Keep the key of a block of coins, without waiting: it is durable before what is appended after it."""

    def key(self, game: Game, step: int) -> CoinKey | None:
        """The key of the block that a step belongs to; none if its coin does not come from a key."""

    def losses(self) -> list[LostEntries]:
        """Journals found shorter than, or different from, what was acknowledged. Such games must not go on."""

    def close(self) -> None:
        """Make everything durable and close the store."""
