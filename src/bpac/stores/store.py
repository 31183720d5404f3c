"""A store: journals, kept."""

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
    number: which it is in its store, from 1.
    route: the route it belongs to.
    segment: the kind of traffic; empty if the route is not divided.
    terms: what the promise is about (models, score, loss, settings), as text. Other terms are another game.
    """

    number: int
    route: str
    segment: str
    terms: str

    @property
    def text(self) -> str:
        """The line with which its journal begins."""
        return game_text(self.number, self.route, self.segment, self.terms)

    @property
    def head(self) -> bytes:
        """The head of its hash chain before the first entry."""
        return next_head(b"", self.text)


class Kept(NamedTuple):
    """An entry of a journal, and what is worth knowing about it without being part of the game.

    Parameters
    ----------
    entry: what was decided, or what came of it.
    note: when, how many tokens …, as JSON values.
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


class KeptRound(NamedTuple):
    """A round of a journal.

    Parameters
    ----------
    decided: the decision.
    outcome: the latest entry about what came of it; none if there is none.
    """

    decided: Kept
    outcome: Kept | None


class Claim(NamedTuple):
    """What a gateway said of itself while it ran, for auditors to check.

    Parameters
    ----------
    entries: how many entries its journal had.
    values: threshold and certificate, as JSON values.
    head: of the hash chain then, as hexadecimal digits; the store fills it in.
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
    first_step: the first round of the block; it goes on to the next key.
    key: secret as long as the block is not over.
    """

    first_step: int
    key: bytes


class LostEntries(NamedTuple):
    """A journal that no longer holds what was acknowledged.

    Parameters
    ----------
    game: its number.
    entries: how many entries it has.
    acknowledged: how many it had when it was written last. If it still has as many, they are not the same.
    head: of the hash chain at that time, as hexadecimal digits.
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
    """Journals in order, and snapshots to start from.

    What is appended is *durable* once an awaited ``durable`` called after it has returned, and never before what
    was appended earlier. A store that failed once takes nothing more: what it holds is then a beginning of what was
    appended, and a gateway must start again from there.
    """

    @property
    def secret(self) -> bytes:
        """A random key that stays the same for the life of the store."""

    @property
    def failure(self) -> StoreError | None:
        """Why it takes nothing more; none as long as it works."""

    def games(self) -> list[Game]:
        """Every game, oldest first."""

    def open_game(self, route: str, segment: str, terms: str) -> Game:
        """Start a new game."""

    def append(self, game: Game, entry: Entry, note: Mapping[str, Any]) -> None:
        """Append to a journal, without waiting."""

    async def durable(self) -> None:
        """Wait until all that was appended so far is kept for good, or raise ``StoreError``."""

    def head(self, game: Game) -> bytes:
        """The head of a journal's hash chain after all that was appended so far."""

    def entries(self, game: Game, after: int = 0) -> Iterator[Kept]:
        """The durable entries of a journal in order, without the first ``after``; ``StoreError`` if one is damaged."""

    def links(self, game: Game) -> Iterator[Link]:
        """The durable entries of a journal as they are written, with the hash chain."""

    def decision(self, game: Game, step: int) -> Decision | None:
        """The decision of that step, if it is durable."""

    def rounds(self, game: Game, before: int | None = None, limit: int = 50) -> list[KeptRound]:
        """The latest durable rounds, newest first, without reading the journal from its beginning.

        Parameters
        ----------
        game: which journal.
        before: only rounds with a step below this.
        limit: how many at most.
        """

    def save_snapshot(self, game: Game, snapshot: Mapping[str, Any], claim: Claim) -> None:
        """Keep a snapshot in the place of earlier ones, and beside the earlier claims what was claimed with it.

        Both are of the journal as it stands: ``StoreError`` if the claim is about fewer or more entries.
        """

    def snapshot(self, game: Game) -> dict[str, Any] | None:
        """The latest durable snapshot; ``SnapshotError`` if it is damaged or not of this journal."""

    def claims(self, game: Game) -> list[Claim]:
        """All that was claimed, in order."""

    def keep_key(self, game: Game, key: CoinKey) -> None:
        """Keep the key of a block of coins, without waiting: it is durable before what is appended after it."""

    def key(self, game: Game, step: int) -> CoinKey | None:
        """The key of the block that a step belongs to; none if its coin came from no such key."""

    def losses(self) -> list[LostEntries]:
        """Journals found shorter than, or different from, what was acknowledged. Such games must not go on."""

    def close(self) -> None:
        """Make everything durable and let go of it."""
