"""Scores that several games share: learned from the audits of all of them, bet on by each for itself.

1. The audits of all games are one sample to learn from. So a small game has a good score long before it has enough
   audits of its own, and a new one has it from its first query on.
2. Wealth is not shared. Each game writes the score to its own journal, and bets on the queries that arrive there after
   it, with its own share of its own α. So each game keeps its own promise, however different they are.
3. Which game a query belongs to should be one of the features.
"""

import threading
from typing import cast

from bpac.errors import SettingsError
from bpac.routing.journal.entries import Learned
from bpac.routing.learning.learning import Learning
from bpac.routing.learning.samples import Sample


class SharedScores:
    """What several games have learned together."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # each router has its own lock, and they may run in several threads
        self._members: list[Learning] = []
        self._all: Learning | None = None

    def add(self, member: Learning) -> None:
        """Let a game share: what it has learned from so far counts for all, and what was learned is offered to it."""
        with self._lock:
            if self._all is None:
                self._all = Learning(member.settings, member.epsilon)
            elif self._all.settings != member.settings:
                raise SettingsError(
                    "routers that share scores must have the same settings for them, "
                    f"got {self._all.settings} and {member.settings}"
                )
            news = member.shared_entries()[len(self._all.joined) :]
            for entry in news:
                self._all.join(entry, 0)
            number = len(self._members)
            self._members.append(member)
            for step, sample in member.samples.items():
                self._all.samples.add((number, step), sample)
            member.pool, member.number = self, number
            member.due = False  # what it could learn alone, all learn together
            self._tell(self._members if news or self._all.enough else [member])

    def observed(self, number: int, step: int, sample: Sample) -> None:
        """An audit of a game has an outcome."""
        with self._lock:
            everything = self._all
            if everything is not None and everything.wants_more:
                everything.samples.add((number, step), sample)
                if everything.enough:
                    self._tell(self._members)

    def offers(self, score: int) -> bool:
        """Whether that score has been learned, or can be learned now."""
        with self._lock:
            everything = self._all
            return everything is not None and score <= len(everything.joined) + everything.enough

    def next(self, score: int, tickets: int) -> Learned | None:
        """The entry of a score for a game that does not have it yet; none if it cannot be learned now.

        Parameters
        ----------
        score: its index.
        tickets: number of the last ticket that the game gave out.
        """
        with self._lock:
            everything = self._all
            # A loss that became known since then may have left too few. A game that has learned alone is ahead of all.
            if everything is not None and score == len(everything.joined) + 1 and everything.enough:
                everything.join(everything.fitted(0), 0)
                self._tell(self._members)
            if everything is None or score > len(everything.joined):
                return None
            model, rounds, gain, _, _ = everything.joined[score - 1]
        return Learned(score, model.to_json(), rounds, gain, tickets, shared=True)

    def _tell(self, members: list[Learning]) -> None:
        """Let games know whether there is a score that they do not have, unless they share others by now.

        There may be thousands of games: it is done only where the answer may have changed.
        """
        everything = cast(Learning, self._all)  # there are games only if there is
        joined, enough = len(everything.joined), everything.enough
        for member in members:
            if not member.due and member.pool is self:
                member.due = len(member.joined) < joined or enough
