"""Many replicas that serve one route: with one game and one published threshold, or each with a game of its own.

How a shared game is simulated:

1. Requests arrive at random replicas and take the next ticket of the game, so that there is one order for all.
2. A replica decides on the terms that it holds (threshold and rate), not on the newest ones: terms are published every
   ``publish_every`` decisions, and each replica fetches them every ``refresh_every`` decisions, all at different times.
   The rule is the router's, ``decide_query``.
3. Decisions and outcomes are folded in one order by ``follow``, as a journal is read, and nothing else certifies.
4. Drafts with a loss take longer, and so do their outcomes.
"""

import heapq
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bpac.arguments import whole
from bpac.replay.router_factory import RouterFactory
from bpac.replay.simulation.delays import Delay
from bpac.replay.simulation.drafting import Drafting
from bpac.replay.simulation.events import PendingOutcomes
from bpac.replay.simulation.laws import Law
from bpac.routing.coins import SeededCoins
from bpac.routing.decision import Decision
from bpac.routing.journal.entries import Entry, Opened, Resolved, Started
from bpac.routing.journal.rebuild import follow
from bpac.routing.route import Route
from bpac.routing.rule import decide_query
from bpac.routing.tickets.ticket import Ticket


@dataclass(frozen=True, slots=True)
class ReplicaResult:
    """What happened on one stream.

    Parameters
    ----------
    unsafe: whether any replica ever decided on a threshold whose risk exceeds ε.
    expert_call_rate: share of the requests for which the expert was called.
    age: how many decisions old the terms of a decision were, on average; 0 without replicas that share a game.
    requests: number of requests that were decided.
    """

    unsafe: bool
    expert_call_rate: float
    age: float
    requests: int


@dataclass(frozen=True, slots=True)
class SharingReplicas:
    """Replicas that share one game: one order, and one threshold that is published now and then.

    Parameters
    ----------
    make_router: the settings of the game.
    law: distribution of the requests.
    replicas: how many replicas there are.
    requests: number of requests to all of them together.
    in_flight: drafts in flight at once, on all of them together.
    publish_every: decisions between two publications of threshold and rate.
    refresh_every: decisions between two moments at which a replica fetches what was published.
    draft_time: how long drafts take (``Drafting.parse``).
    delay: when outcomes arrive, counted in decisions of all replicas.
    """

    make_router: RouterFactory
    law: Law
    replicas: int = 1000
    requests: int = 6000
    in_flight: int = 64
    publish_every: int = 100
    refresh_every: int = 1000
    draft_time: str = "losses:3"
    delay: Delay = Delay(mean=20.0, by_loss=True)

    def __post_init__(self) -> None:
        for name in ("replicas", "requests", "publish_every", "refresh_every"):
            whole(getattr(self, name), name, 1)

    def stream(self, seed: int, journal: Callable[[Entry], object] | None = None) -> ReplicaResult:
        """Send one stream of requests to the replicas.

        Parameters
        ----------
        seed: random seed.
        journal: called with every entry of the game's journal, in order (default: none).
        """
        return _SharingStream(self, np.random.default_rng(seed), journal).run()


class _SharingStream:
    """One stream: the requests in flight, the folded state, and what was published."""

    def __init__(
        self, game: SharingReplicas, rng: np.random.Generator, journal: Callable[[Entry], object] | None
    ) -> None:
        self._game = game
        self._journal = journal
        self._rng = rng
        self._losses: list[float]
        self._uncertainties, self._losses = (column.tolist() for column in game.law.draw(game.requests, rng))
        self._at = rng.integers(game.replicas, size=game.requests).tolist()
        self._phase = rng.integers(game.refresh_every, size=game.replicas).tolist()
        self._drafting = Drafting.parse(game.draft_time, game.in_flight)
        self._coins = SeededCoins(int(rng.integers(1 << 63)))
        self._draws: list[float] = []
        self._route = Route(game.make_router(self._coins).settings)
        if journal is not None:
            journal(Opened(self._route.settings.to_json()))
        self._fold(Started())
        # The terms in the order in which they were published, each with the ticket number left open.
        self._published = [self._terms()]
        # The last ticket given out in each epoch.
        self._given: dict[int, int] = {}
        self._outcomes = PendingOutcomes(game.delay, rng)
        self._audits: dict[int, Decision] = {}
        self._decided = self._calls = self._age = 0
        self._highest = 0.0

    def run(self) -> ReplicaResult:
        """All requests, from the first arrival to the last outcome."""
        in_flight: list[tuple[float, int, Ticket]] = []
        now, arrived, requests = 0.0, 0, self._game.requests
        while arrived < requests or in_flight:
            while arrived < requests and len(in_flight) < self._drafting.in_flight:
                ends = now + self._drafting.draw(arrived, self._losses[arrived], self._rng)
                heapq.heappush(in_flight, (ends, arrived, self._arrive(self._at[arrived])))
                arrived += 1
            now, request, ticket = heapq.heappop(in_flight)
            self._decide(request, ticket)
        terms = self._route.terms
        unsafe = terms.kept_share * self._game.law.risk(self._highest) > terms.epsilon + 1e-12
        return ReplicaResult(unsafe, self._calls / requests, self._age / requests, requests)

    def _arrive(self, replica: int) -> Ticket:
        """The next ticket, with the terms that the replica holds."""
        game = self._game
        fetched = self._decided - (self._decided + self._phase[replica]) % game.refresh_every
        terms = self._published[max(fetched, 0) // game.publish_every]
        self._age += self._decided - game.publish_every * (max(fetched, 0) // game.publish_every)
        number = self._given[terms.epoch] = self._given.get(terms.epoch, 0) + 1
        return Ticket(number, *terms[1:])

    def _decide(self, request: int, ticket: Ticket) -> None:
        """Decide a request whose draft is complete, and fold what is known by then."""
        route, game = self._route, self._game
        step = route.step + 1
        if not self._draws:
            self._draws = self._coins.draws(step)
        number, epoch, threshold, rate, _, seen = ticket
        decision = decide_query(
            *(step, self._uncertainties[request], threshold, rate, self._draws.pop(), route.shadow),
            *(route.certain_while_closed, epoch, (), number, seen),
        )
        self._fold(decision)
        self._highest = max(self._highest, threshold)
        self._decided += 1
        if decision.call_expert:
            self._calls += 1
            self._audits[request] = decision
            self._outcomes.expect(request, self._losses[request], self._decided)
        for query, loss, _ in self._outcomes.due(self._decided):
            audited = self._audits.pop(query)
            self._fold(Resolved(audited.step, loss, "" if loss is not None else "lost"))
        if self._decided % game.publish_every == 0:
            self._published.append(self._terms())

    def _fold(self, entry: Entry) -> None:
        follow(self._route, (entry,))
        if self._journal is not None:
            self._journal(entry)

    def _terms(self) -> Ticket:
        """What the folder would publish now."""
        route = self._route
        route.charge()
        current = route.current
        return Ticket(0, current.number, current.bettor.threshold, current.rate, current.active_score, route.entries)


@dataclass(frozen=True, slots=True)
class SeparateReplicas:
    """Replicas that each certify a threshold from their own requests, with the whole α each: a negative control.

    Everything is in their favour: one draft at a time, and every outcome is known at once.

    Parameters
    ----------
    make_router: the settings of each replica's game.
    law: distribution of the requests.
    replicas: how many replicas there are.
    requests_each: number of requests to each replica.
    """

    make_router: RouterFactory
    law: Law
    replicas: int = 1000
    requests_each: int = 1000

    def stream(self, seed: int) -> ReplicaResult:
        """Send requests to one replica after the other, until one of them has an unsafe threshold in force."""
        rng = np.random.default_rng(seed)
        calls = requests = 0
        for _ in range(self.replicas):
            router = self.make_router(SeededCoins(int(rng.integers(1 << 63))))
            terms = router.settings.terms
            uncertainties, losses = (column.tolist() for column in self.law.draw(self.requests_each, rng))
            highest = 0.0
            for uncertainty, loss in zip(uncertainties, losses, strict=True):
                decision = router.decide(uncertainty)
                highest = max(highest, decision.threshold)
                if decision.call_expert:
                    calls += 1
                    router.observe(decision, loss)
            requests += self.requests_each
            if terms.kept_share * self.law.risk(highest) > terms.epsilon + 1e-12:
                return ReplicaResult(True, calls / requests, 0.0, requests)
        return ReplicaResult(False, calls / requests, 0.0, requests)
