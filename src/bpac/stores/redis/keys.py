"""The names of keys in Redis. All keys of a game carry one hash tag, so that they live on one node of a cluster."""

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class GameNames:
    """The keys of a game.

    Parameters
    ----------
    name: of the gateways that share it.
    number: of the game.

    >>> GameNames("bpac", 3).journal
    '{bpac:3}:journal'
    """

    PARTS: ClassVar[tuple[str, ...]] = (
        *(
            "state",
            "inbox",
            "journal",
            "open",
            "keys",
            "replies",
            "replicas",
            "snapshot",
            "claims",
            "point",
            "archived",
            "named",
            "named_ends",
            "followed",
        ),
    )

    name: str
    number: int

    def of(self, part: str) -> str:
        """The key of one part of the game."""
        return f"{{{self.name}:{self.number}}}:{part}"

    @property
    def state(self) -> str:
        """A hash: tickets and steps given out, what is published, who folds."""
        return self.of("state")

    @property
    def inbox(self) -> str:
        """A stream: what happened and is not in the journal yet."""
        return self.of("inbox")

    @property
    def journal(self) -> str:
        """A stream: the entries; the id of each is its number."""
        return self.of("journal")

    @property
    def open(self) -> str:
        """A hash: the tickets under way, with their replica and terms."""
        return self.of("open")

    @property
    def keys(self) -> str:
        """A sorted set: the secret keys of the coins, by the first step of their block."""
        return self.of("keys")

    @property
    def replies(self) -> str:
        """A hash: the last reply to each replica."""
        return self.of("replies")

    @property
    def replicas(self) -> str:
        """A hash: a counter for each replica, which grows while it lives."""
        return self.of("replicas")

    @property
    def snapshot(self) -> str:
        """The latest snapshot."""
        return self.of("snapshot")

    @property
    def claims(self) -> str:
        """A list: what was claimed about the game, for auditors."""
        return self.of("claims")

    @property
    def point(self) -> str:
        """A copy of an earlier snapshot: entries before it are archived next."""
        return self.of("point")

    @property
    def outside(self) -> str:
        """A hash: drafts that gateways served while Redis was gone, as they reported them."""
        return self.of("outside")

    @property
    def archived(self) -> str:
        """What takes the place of the entries that were archived."""
        return self.of("archived")

    @property
    def named(self) -> str:
        """A hash: decisions by name (``named_decisions.py``), and tickets that are on their way to one."""
        return self.of("named")

    @property
    def named_ends(self) -> str:
        """A sorted set: until when each of these names is kept, in seconds since 1970 on the clock of Redis."""
        return self.of("named_ends")

    @property
    def followed(self) -> str:
        """A sorted set: when the last request came that followed a decision, by its step."""
        return self.of("followed")


@dataclass(frozen=True, slots=True)
class SharedNames:
    """The keys that all games of some gateways have in common.

    Parameters
    ----------
    name: of the gateways.
    """

    name: str

    def of(self, part: str) -> str:
        """The key of one part."""
        return f"{{{self.name}}}:{part}"

    @property
    def games(self) -> str:
        """A hash: every game by its number."""
        return self.of("games")

    @property
    def order(self) -> str:
        """A list: the numbers of games in the order in which they were opened or resumed."""
        return self.of("order")

    @property
    def last(self) -> str:
        """The last number that a game got."""
        return self.of("last")

    @property
    def secret(self) -> str:
        """A random key for the ids of decisions."""
        return self.of("secret")

    @property
    def scores(self) -> str:
        """A hash: the scores that gateways have agreed on (``score = "auto"``), by route and the game before."""
        return self.of("scores")

    @property
    def losses(self) -> str:
        """A hash: games whose journals lost entries."""
        return self.of("losses")
