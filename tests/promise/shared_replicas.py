"""Several replicas under load, in turns: drafts and outcomes that lose take longer.

A ``Player`` says what happens at one replica in each turn, wherever its game is. In ``own_views`` there is no common
order: every replica certifies thresholds from what it has seen itself.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from bpac.replay.simulation.laws import Law
from bpac.routing.decision import Decision
from bpac.routing.journal.entries import Resolved
from bpac.routing.journal.rebuild import follow
from bpac.routing.router import Router

# Drafts that each replica has under way, turns that a draft and an outcome take on average, and how many times as many
# those take that lose.
UNDER_WAY, TURNS, SLOWER = 8, 3.0, 4.0


class Drafted(NamedTuple):
    """A draft that is complete in this turn."""

    ticket: Any
    uncertainty: float
    loss: float


class Known(NamedTuple):
    """An outcome that is known in this turn."""

    decision: Decision
    loss: float


class Player:
    """The requests of one replica.

    Parameters
    ----------
    law: of scores and losses.
    rounds: how many requests arrive here.
    seed: random seed.
    """

    def __init__(self, law: Law, rounds: int, seed: int) -> None:
        self._dice = np.random.default_rng(seed)
        uncertainties, losses = law.draw(rounds, self._dice)
        self._left = list(zip(uncertainties.tolist(), losses.tolist(), strict=True))
        self._drafting: list[tuple[int, Drafted]] = []
        self._grading: list[tuple[int, Known]] = []
        self._turn = 0
        self.highest = 0.0

    @property
    def over(self) -> bool:
        """Whether nothing is left to happen."""
        return not (self._left or self._drafting or self._grading)

    def arriving(self) -> int:
        """How many requests arrive in this turn."""
        self._turn += 1
        return min(UNDER_WAY - len(self._drafting), len(self._left))

    def arrived(self, tickets: list[Any]) -> None:
        """They have their tickets."""
        for ticket in tickets:
            uncertainty, loss = self._left.pop()
            self._drafting.append((self._turn + self._time(loss), Drafted(ticket, uncertainty, loss)))

    def drafted(self) -> list[Drafted]:
        """The drafts that are complete."""
        done = [draft for at, draft in self._drafting if at <= self._turn]
        self._drafting = [waiting for waiting in self._drafting if waiting[0] > self._turn]
        return done

    def decided(self, draft: Drafted, decision: Decision) -> None:
        """A draft is decided."""
        self.highest = max(self.highest, decision.threshold)
        if decision.call_expert:
            self._grading.append((self._turn + self._time(draft.loss), Known(decision, draft.loss)))

    def known(self) -> list[Known]:
        """The outcomes that are known."""
        done = [outcome for at, outcome in self._grading if at <= self._turn]
        self._grading = [waiting for waiting in self._grading if waiting[0] > self._turn]
        return done

    def _time(self, loss: float) -> int:
        return 1 + int(self._dice.exponential(TURNS * (SLOWER if loss else 1.0)))


def players(law: Law, rounds: int, seed: int, replicas: int = 4) -> list[Player]:
    """The replicas of one stream."""
    return [Player(law, rounds // replicas, seed * replicas + number) for number in range(replicas)]


def own_views(law: Law, rounds: int, seeds: range, **options: Any) -> Iterator[float]:
    """The highest threshold of each stream in which every replica certifies from its own view, in memory.

    The view of a replica is what it knows: its own rounds from their decision on, and those of others once they tell
    of them: a kept draft at once, an audit when its outcome is known.
    """
    for seed in seeds:
        seats = players(law, rounds, seed)
        routers = [Router(seed=1000 * seed + number, **options) for number in range(len(seats))]
        while not all(player.over for player in seats):
            for player, router in zip(seats, routers, strict=True):
                player.arrived([None] * player.arriving())
                told: list[Known] = []
                for draft in player.drafted():
                    decision = router.decide(draft.uncertainty)
                    player.decided(draft, decision)
                    if not decision.call_expert:
                        told.append(Known(decision, 0.0))
                for outcome in player.known():
                    router.observe(*outcome)
                    told.append(outcome)
                for other in routers:
                    if other is not router:
                        for outcome in told:
                            hear(other, outcome)
        yield max(player.highest for player in seats)


def hear(router: Router, outcome: Known) -> None:
    """Let a router count a round of another one as if it had decided it now."""
    route = router._route
    decision = outcome.decision._replace(step=route.step + 1, epoch=route.epoch)
    follow(route, [decision, *([Resolved(decision.step, outcome.loss)] if decision.call_expert else [])])
