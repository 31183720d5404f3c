"""The router: arrive → decide → observe.

1. A query *arrives* and takes a ticket (``arrive``). Its draft is asked for, and scored.
2. ``decide`` says whether the expert is called and who answers. The decision is written to the journal before it takes
   effect.
3. If the expert was called, the draft is compared with its answer, and the loss is reported (``observe``), given up
   (``forfeit``), or impossible because the expert refused (``refuse``). Until then it counts as 1.
4. Every change is an entry of the journal, so the journal rebuilds the router to the same bits (``rebuild``). An entry
   is first *proposed*, then written, then *applied*; a journal that fails leaves everything as it was.
5. The rule that decides is in ``rule.py``, the state in ``route.py``, the entries are made and checked in
   ``proposals.py``.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Literal, Self, cast

from bpac.arguments import fraction
from bpac.errors import SettingsError, StaleProposal
from bpac.routing.cascade.walk import Walk
from bpac.routing.coins import Coins
from bpac.routing.decision import Decision
from bpac.routing.exploration.schedules import Exploration
from bpac.routing.journal.entries import Entry, Opened, Resolved
from bpac.routing.journal.rebuild import follow, opened
from bpac.routing.journal.snapshot import load_snapshot
from bpac.routing.learning.features import Features
from bpac.routing.learning.shared_scores import SharedScores
from bpac.routing.policies import Policy, named_policy
from bpac.routing.route import Route
from bpac.routing.router.parts import Write
from bpac.routing.router.queries import Queries
from bpac.routing.router.view import RouterView
from bpac.routing.router.warm_start import WarmStarts
from bpac.routing.settings import Settings, check_policy
from bpac.routing.tickets.ticket import Ticket


class Router(RouterView, Queries, WarmStarts):
    """Decides for each draft whether the expert is called, and keeps the promise.

    One router is one game, with one journal. It may be used from several threads: a lock makes calls happen one after
    the other (``lock.py``). It waits for nothing else, so an event loop may call it directly.

    Queries count in the order in which they arrive. A caller with several queries under way takes a ticket for each
    when it comes (``arrive``) and passes it on with the draft's score (``decide``). Without tickets, decisions count in
    the order of the calls; the promise then assumes that this order does not depend on the losses. It does where
    drafts of hard questions take longer (MATH section 12).

    Parameters
    ----------
    epsilon: bound on the average loss compared with always asking the expert (ε). With the default policy no threshold
        is ever in force whose risk exceeds it; with ``budget`` the actual average loss never does.
    alpha: the chance that this fails at any time (α, default: 0.1).
    policy: routing policy: a name such as ``portfolio`` (default), ``budget`` or ``paper``, or a policy object.
    memory, assume: settings of the portfolio policy.
    exploration: exploration schedule (default: the policy's own).
    explore: what the caller of an audited query gets: ``serve`` gives the expert's answer (default), ``shadow`` the
        draft.
    alpha_epochs: whether ``all`` epochs together have level α (default), or ``each`` epoch after a drift alarm has
        level α again.
    max_owed: audits that may be outstanding (default: 4096); beyond it the oldest is given up.
    seed: random seed that makes the coins repeatable, for experiments (default: from the operating system).
    coins: another random source, instead of the seed.
    journal: called with every entry before it takes effect, for example ``entries.append``. It is never called by two
        threads at once.

    >>> router = Router(epsilon=0.05, alpha=0.1, seed=1)
    >>> decision = router.decide(0.3)
    >>> decision.call_expert                         # nothing is certified yet
    True
    >>> router.observe(decision, loss=0.0)
    >>> router.threshold
    0.0
    """

    def __init__(
        self,
        epsilon: float,
        alpha: float = 0.1,
        policy: str | Policy = "portfolio",
        *,
        memory: str | None = None,
        assume: str | None = None,
        exploration: Exploration | None = None,
        explore: Literal["serve", "shadow"] = "serve",
        alpha_epochs: Literal["all", "each"] = "all",
        max_owed: int = 4096,
        seed: int | None = None,
        coins: Coins | None = None,
        journal: Write | None = None,
    ) -> None:
        if isinstance(policy, str):
            policy = named_policy(policy, memory, assume)
        elif memory is not None or assume is not None:
            raise SettingsError("memory and assume go with the name of a policy: set them on the policy object instead")
        check_policy(policy)
        if exploration is None:
            exploration = policy.exploration
        settings = Settings(epsilon, alpha, policy, exploration, explore, alpha_epochs, max_owed)
        if journal is not None:
            settings.check_rebuilds()
        self._start(Route(settings), seed, coins, journal)
        self._write(Opened(settings.to_json()))

    def decide(
        self,
        uncertainty: float | Mapping[str, float] | Walk,
        *,
        ticket: Ticket | None = None,
        features: Features | None = None,
    ) -> Decision:
        """Decide for a query.

        Parameters
        ----------
        uncertainty: score of the draft in [0, 1]. With several scores, one for each name; in a cascade, the query's
            walk. A query whose draft has no score is not decided: send it to the expert, and withdraw its ticket.
        ticket: what ``arrive`` returned for the query; without one, it counts as arriving now.
        features: what is known of the draft beside its score, where the policy learns scores: numbers and words by
            name; those that are missing are not known.
        """
        lock = self._lock
        lock.acquire()  # what ``start`` does, without the call: this is done for every query
        if lock.busy:
            lock.refuse()
        lock.busy = True
        try:
            try:
                decision = self._proposals.decision(uncertainty, ticket, features)
                if self._journal is not None:
                    self._journal(decision)
            except Exception:
                lock.busy = False
                raise
            self._route.decided(decision)
            if decision[9]:
                self._tickets.done(decision)
            lock.busy = False
            return decision
        finally:
            lock.release()

    def observe(self, decision: Decision, loss: float) -> None:
        """Report the loss of an audited draft: any time later, in any order, once.

        Parameters
        ----------
        decision: what ``decide`` returned.
        loss: loss of the draft against the expert's answer, in [0, 1].
        """
        if type(loss) is not float or not 0.0 <= loss <= 1.0:
            loss = fraction(loss, "loss")
        lock, route = self._lock, self._route
        lock.start()
        try:
            if decision is not None and decision is route.uncharged and self._journal is None:
                # The shortest way for replays: nothing need be looked up or written.
                self._proposals.latest = None
                route.resolved(decision, loss)
            else:
                self._settle(self._written(lambda: self._proposals.outcome(decision, loss)))
            lock.busy = False
        finally:
            lock.release()

    def forfeit(self, decision: Decision, cause: str = "unknown", *, draft_served: bool = False) -> None:
        """Give up on an outcome: the loss counts as 1.

        Parameters
        ----------
        decision: what ``decide`` returned.
        cause: why; counted in ``summary``.
        draft_served: the expert failed and the caller got the draft instead. No theorem
            covers such an answer: the certificate counts it as loss 1.
        """
        self._record(lambda: self._proposals.forfeit(decision, cause, draft_served))

    def refuse(self, decision: Decision, *, draft_served: bool = False) -> None:
        """Report that the expert refused to answer: there is nothing that the draft could lose against.

        It counts as a fair round, which pays nothing on average at any threshold (MATH section 13): refusals then
        neither raise nor lower a threshold, even if a caller provokes them.

        Parameters
        ----------
        decision: what ``decide`` returned.
        draft_served: the draft was accepted, and the caller got it in the expert's place.
        """
        self._record(lambda: self._proposals.refusal(decision, draft_served))

    def propose(
        self,
        uncertainty: float | Mapping[str, float] | Walk,
        *,
        ticket: Ticket | None = None,
        features: Features | None = None,
    ) -> Decision:
        """The next decision, which takes effect when it is passed to ``apply``.

        For callers that write the journal themselves: propose, write the entry, apply it, with nothing in between. In
        a program with several threads only one of them may do so; the others would find their proposals stale.
        Proposing again instead is allowed, and leads to the same decision for the same query. Only entries that must
        stand before the decision are written through the ``journal`` callback: a commitment to coins, a score that was
        learned, and the start of tickets where a process before this one died.

        Parameters
        ----------
        uncertainty, ticket, features: as for ``decide``.

        >>> router = Router(epsilon=0.05, seed=1)
        >>> decision = router.propose(0.3)
        >>> router.step
        0
        >>> router.apply(decision)
        >>> router.step
        1
        """
        with self._lock.change():
            return self._proposals.decision(uncertainty, ticket, features)

    def propose_outcome(self, decision: Decision, loss: float) -> Resolved:
        """The entry that ``observe`` would write; it takes effect when it is passed to ``apply``."""
        with self._lock:
            return self._proposals.outcome(decision, loss)

    def propose_forfeit(self, decision: Decision, cause: str = "unknown", *, draft_served: bool = False) -> Resolved:
        """The entry that ``forfeit`` would write; it takes effect when it is passed to ``apply``."""
        with self._lock:
            return self._proposals.forfeit(decision, cause, draft_served)

    def propose_refusal(self, decision: Decision, *, draft_served: bool = False) -> Resolved:
        """The entry that ``refuse`` would write; it takes effect when it is passed to ``apply``."""
        with self._lock:
            return self._proposals.refusal(decision, draft_served)

    def apply(self, entry: Decision | Resolved) -> None:
        """Let a proposal take effect that the caller has written to a journal; the ``journal`` callback is not called.

        Parameters
        ----------
        entry: the latest proposal of this router. Nothing else may have happened since: it would stand earlier in the
            journal, and could have led to another proposal.
        """
        lock = self._lock
        lock.start()
        try:
            try:
                self._proposals.check(entry)
            except StaleProposal:
                lock.busy = False
                raise
            if isinstance(entry, Decision):
                self._route.decided(entry)
                if entry.ticket:
                    self._tickets.done(entry)
            else:
                self._settle(entry)
            lock.busy = False
        finally:
            lock.release()

    def share_scores(self, shared: SharedScores) -> None:
        """Learn scores together with other routers, for example those of other segments (MATH section 14).

        The score is learned from the audits of all of them. Each bets on it for itself, so each keeps its own promise.

        Parameters
        ----------
        shared: what the routers share; their policies must learn from the same features.
        """
        with self._lock.change():
            self._proposals.latest = None
            if self._route.learning is None:
                raise SettingsError("this router learns no score: give its policy learn=LearnedScore(…)")
            shared.add(self._route.learning)

    @classmethod
    def rebuild(
        cls,
        entries: Iterable[Entry],
        *,
        snapshot: object = None,
        seed: int | None = None,
        coins: Coins | None = None,
        journal: Write | None = None,
    ) -> Self:
        """The router that wrote these entries, to the same bits.

        Audits without an outcome are still owed and charged: observe or forfeit them.

        Parameters
        ----------
        entries: the journal, in order; with a snapshot, only what was written after it.
        snapshot: what ``snapshot`` returned.
        seed, coins, journal: for the decisions to come, as for a new router.
        """
        remaining = iter(entries)
        route = opened(next(remaining, None)) if snapshot is None else load_snapshot(snapshot)
        follow(route, remaining)
        router = cls.__new__(cls)
        router._start(route, seed, coins, journal)
        return router

    @classmethod
    def showing(cls, route: Route) -> Self:
        """A router that shows a state which others change, for example one that follows the journal of another process.

        Parameters
        ----------
        route: the state.
        """
        router = cls.__new__(cls)
        router._start(route, 0, None, None)
        return router

    def trial(self) -> "Router":
        """A copy of this router to try things out: it has no journal, and no query is under way there."""
        route = load_snapshot(self.snapshot())
        if route.running:
            route.stopped()
        return Router.showing(route)

    def _record(self, propose: Callable[[], Resolved]) -> None:
        lock = self._lock
        lock.start()
        try:
            self._settle(self._written(propose))
            lock.busy = False
        finally:
            lock.release()

    def _written(self, propose: Callable[[], Resolved]) -> Resolved:
        """An entry that is proposed and written; if that fails, nothing has changed."""
        try:
            entry = propose()
            self._write(entry)
        except Exception:
            self._lock.busy = False
            raise
        return entry

    def _settle(self, entry: Resolved) -> None:
        self._proposals.latest = None
        decision = self._route.find(entry.step)
        self._route.settle(cast(Decision, decision), entry)  # it was found when the entry was proposed
