"""A store: journals, kept."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from bpac.errors import StoreError
from bpac.routing.decision import Decision
from bpac.routing.journal import Entry


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


class Kept(NamedTuple):
    """An entry of a journal, and what is worth knowing about it without being part of the game.

    Parameters
    ----------
    entry: what was decided, or what came of it.
    note: when, how many tokens …, as JSON values.
    """

    entry: Entry
    note: Mapping[str, Any]


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
    """

    entries: int
    values: Mapping[str, Any]


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

    def entries(self, game: Game, after: int = 0) -> Iterator[Kept]:
        """The durable entries of a journal in order, without the first ``after``."""

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
        """Keep a snapshot in the place of earlier ones, and beside the earlier claims what was claimed with it."""

    def snapshot(self, game: Game) -> dict[str, Any] | None:
        """The latest durable snapshot."""

    def claims(self, game: Game) -> list[Claim]:
        """All that was claimed, in order."""

    def close(self) -> None:
        """Make everything durable and let go of it."""
