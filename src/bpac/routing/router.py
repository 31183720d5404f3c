"""The router: arrive → decide → observe."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from typing import Any, Literal, cast

from bpac.arguments import fraction
from bpac.betting.bounds.certificate import Certificate
from bpac.errors import (
    AlreadyResolved,
    InputError,
    NotAudited,
    ObservationError,
    SettingsError,
    StaleProposal,
    UnknownStep,
)
from bpac.routing.coins import Coins, CommittedCoins, SeededCoins
from bpac.routing.decision import Decision
from bpac.routing.exploration.schedules import Exploration
from bpac.routing.grading_value import GradingValue
from bpac.routing.journal.entries import Entry, Labelled, Opened, Resolved
from bpac.routing.journal.past_game import labelled_rows
from bpac.routing.journal.rebuild import follow, opened
from bpac.routing.journal.snapshot import load_snapshot, take_snapshot
from bpac.routing.policies import Policy, named_policy
from bpac.routing.route import Route
from bpac.routing.settings import Settings, check_policy
from bpac.routing.tickets.ticket import Ticket
from bpac.routing.tickets.tickets import Tickets

Write = Callable[[Entry], object]


class Router:
    """Decides for each draft whether the expert is called, and keeps the promise.

    One router is one betting game. It is meant for one thread or one event loop, and never blocks.

    Queries count in the order in which they arrive. A caller with several queries under way takes a ticket for each
    when it comes (``arrive``) and hands it in with the draft's score (``decide``). Without tickets, decisions count in
    the order of the calls; the promise then assumes that this order says nothing about the losses, which it does where
    drafts of hard questions take longer (MATH section 12).

    Parameters
    ----------
    epsilon: the average loss against always asking the expert stays below this (ε) …
    alpha: … with at least the probability 1 − alpha, at all times (α).
    policy: a name (``portfolio``, ``budget``, ``paper``, …) or a policy object.
    memory, assume: of the portfolio policy.
    exploration: a schedule other than the policy's own.
    explore: ``serve`` gives callers the expert's answer on an audit, ``shadow`` the draft.
    alpha_epochs: ``all`` epochs together have level α, or ``each`` epoch after a drift alarm has it anew.
    max_owed: audits that may be outstanding; beyond it the oldest is given up.
    seed: makes the coins repeatable, for experiments.
    coins: another random source.
    journal: called with every entry before it takes effect, for example ``entries.append``.

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
        self._start(Route(settings), seed, coins, journal)
        self._write(Opened(settings.to_json()))

    def _start(self, route: Route, seed: int | None, coins: Coins | None, journal: Write | None) -> None:
        self._route = route
        self._coins = coins or SeededCoins(seed)
        self._draws: list[float] = []
        self._proposed: Decision | Resolved | None = None
        self._journal = journal
        self._worth = GradingValue()
        self._tickets = Tickets(route, self._write)

    @property
    def settings(self) -> Settings:
        """What this router promises, and how it goes about it."""
        return self._route.settings

    @property
    def threshold(self) -> float:
        """Drafts with an uncertainty below this are kept (û)."""
        self._route.charge()
        return self._route.game.threshold

    @property
    def step(self) -> int:
        """The number of decisions made."""
        return self._route.step

    @property
    def epoch(self) -> int:
        """The number of the current betting game: one more than the resets by the drift alarm."""
        return self._route.epoch

    @property
    def owed(self) -> tuple[Decision, ...]:
        """The audits that wait for their outcome, oldest first."""
        self._route.charge()
        return tuple(self._route.owed.values())

    @property
    def under_way(self) -> tuple[Ticket, ...]:
        """The tickets that are not done, oldest first."""
        return self._tickets.under_way()

    @property
    def held_up(self) -> tuple[int, int]:
        """Decided queries that wait for earlier ones to be decided, and earlier ones that are charged meanwhile."""
        arrivals = self._route.by_arrival and self._route.by_arrival.arrivals
        return (len(arrivals.held), len(arrivals.passed)) if arrivals else (0, 0)

    def arrive(self) -> Ticket:
        """Take a ticket for a query that has just arrived, before its draft is asked for.

        Hand it to ``decide``, or to ``withdraw`` if there is nothing to decide.

        >>> router = Router(epsilon=0.05, seed=1)
        >>> first, second = router.arrive(), router.arrive()
        >>> router.decide(0.2, ticket=second).step                   # its draft came first …
        1
        >>> router.decide(0.4, ticket=first).ticket                  # … and counts second
        1
        """
        self._proposed = None
        return self._tickets.give()

    def withdraw(self, ticket: Ticket, reason: str = "") -> None:
        """Let a ticket go without a decision: its caller left, or its draft has no score.

        Parameters
        ----------
        ticket: what ``arrive`` returned.
        reason: why, for the journal.
        """
        if not isinstance(reason, str):
            raise InputError(f"reason must be a string, got {reason!r}")
        self._proposed = None
        self._tickets.withdraw(ticket, reason)

    def overdue(self, ticket: Ticket) -> None:
        """Stop waiting for a draft that takes too long, so that it no longer holds up the queries behind it.

        Until it is decided or withdrawn it counts as a loss of 1 at every threshold.

        Parameters
        ----------
        ticket: what ``arrive`` returned.
        """
        self._proposed = None
        self._tickets.overdue(ticket)

    def cut_off(self) -> None:
        """Report that all queries under way were ended by something else than themselves, such as an outage.

        What was under way took longer than what was decided, so it is likelier to lose: withdrawing all of it at once
        would spare the losses that were on their way. As after a crash, the earliest ticket under way is charged for
        good, and wins beyond it are forgotten. The tickets given out so far are void: send their queries to the expert.
        """
        self._proposed = None
        self._tickets.cut_off()

    def stop(self) -> bool:
        """Note in the journal that no query is under way; false if there is one, or if tickets are not in use.

        A router that is rebuilt without such a note assumes that a query was cut off, and is charged for it.
        """
        self._proposed = None
        return self._tickets.stop()

    def decide(self, uncertainty: float | Mapping[str, float], *, ticket: Ticket | None = None) -> Decision:
        """Decide for a query: ``propose``, write to the journal, ``apply``.

        Parameters
        ----------
        uncertainty: score of the draft in [0, 1]. With several scores, one for each name. A query whose draft has no
            score is not decided: send it to the expert, and withdraw its ticket.
        ticket: what ``arrive`` returned for the query; without one, it counts as arriving now.
        """
        decision = self.propose(uncertainty, ticket=ticket)
        if self._journal is not None:
            self._journal(decision)
        self._decided(decision)
        return decision

    def observe(self, decision: Decision, loss: float) -> None:
        """Report the loss of an audited draft: any time later, in any order, once.

        Parameters
        ----------
        decision: what ``decide`` returned.
        loss: loss of the draft against the expert's answer, in [0, 1].
        """
        if self._journal is None and decision is not None and decision is self._route.uncharged:
            # By far the most common in replays: nothing needs to be looked up or written.
            loss = fraction(loss, "loss")
            self._proposed = None
            self._route.resolved(decision, loss)
            return
        self._record(self.propose_outcome(decision, loss))

    def forfeit(self, decision: Decision, cause: str = "unknown", *, draft_served: bool = False) -> None:
        """Give up on an outcome: the loss counts as 1.

        Parameters
        ----------
        decision: what ``decide`` returned.
        cause: why; counted in ``summary``.
        draft_served: the expert failed and the caller got the draft in its place. No theorem
            covers such an answer: the certificate counts it as loss 1.
        """
        self._record(self.propose_forfeit(decision, cause, draft_served=draft_served))

    def refuse(self, decision: Decision, *, draft_served: bool = False) -> None:
        """Report that the expert refused to answer: there is nothing that the draft could lose against.

        It counts as a fair round, which pays nothing on average at any threshold (MATH section 13): refusals then
        neither open nor close anything, whoever provokes them.

        Parameters
        ----------
        decision: what ``decide`` returned.
        draft_served: the draft was accepted, and the caller got it in the expert's place.
        """
        self._record(self.propose_refusal(decision, draft_served=draft_served))

    def propose(self, uncertainty: float | Mapping[str, float], *, ticket: Ticket | None = None) -> Decision:
        """The next decision, which takes effect when it is handed to ``apply``.

        For callers that write the journal themselves: propose, write the entry, apply it, with nothing in between.
        Proposing again instead is allowed, and leads to the same decision for the same query. Only entries that must
        stand before the decision are written through the ``journal`` callback: a commitment to coins.

        Parameters
        ----------
        uncertainty, ticket: as for ``decide``.

        >>> router = Router(epsilon=0.05, seed=1)
        >>> decision = router.propose(0.3)
        >>> router.step
        0
        >>> router.apply(decision)
        >>> router.step
        1
        """
        route = self._route
        # An audit without an outcome must be charged before the threshold is read.
        if route.uncharged is not None:
            route.charge()
        uncertainties: tuple[float, ...] = ()
        if route.score_names:
            uncertainties = self._all_scores(uncertainty)
        elif type(uncertainty) is not float or not 0.0 <= uncertainty <= 1.0:
            uncertainty = fraction(uncertainty, "uncertainty")
        step = route.step + 1
        draws = self._draws
        if not draws:
            draws = self._draws = self._more_draws(step)
        number = seen = 0
        if ticket is None and not route.running:
            # The threshold first, then the step: a threshold may be stale, never from the future.
            threshold, rate, epoch, score = route.game.threshold, route.rate, route.epoch, 0
            if uncertainties:
                score = route.active_score
        else:
            number, epoch, threshold, rate, score, seen = self._tickets.terms(ticket)
        if uncertainties:
            uncertainty = uncertainties[score]
        self._proposed = decision = route.rule.decide(
            step,
            uncertainty,  # type: ignore[arg-type]  # a number by now
            threshold,
            rate,
            draws[-1],
            epoch,
            uncertainties,
            number,
            seen,
        )
        return decision

    def propose_outcome(self, decision: Decision, loss: float) -> Resolved:
        """The entry that reports a loss; it takes effect when it is handed to ``apply``.

        Parameters
        ----------
        decision, loss: as for ``observe``.
        """
        loss = fraction(loss, "loss")
        self._proposed = entry = Resolved(self._find(decision).step, loss)
        return entry

    def propose_forfeit(self, decision: Decision, cause: str = "unknown", *, draft_served: bool = False) -> Resolved:
        """The entry that gives an outcome up; it takes effect when it is handed to ``apply``.

        Parameters
        ----------
        decision, cause, draft_served: as for ``forfeit``.
        """
        if not isinstance(cause, str) or not isinstance(draft_served, bool):
            raise InputError(f"cause must be a string and draft_served a bool, got {cause!r} and {draft_served!r}")
        step = self._find(decision).step
        if step in self._route.given_up:
            raise AlreadyResolved(f"step {step} was given up already; only its loss is still accepted")
        self._proposed = entry = Resolved(step, None, cause, draft_served)
        return entry

    def propose_refusal(self, decision: Decision, *, draft_served: bool = False) -> Resolved:
        """The entry that reports a refusal of the expert; it takes effect when it is handed to ``apply``.

        Parameters
        ----------
        decision, draft_served: as for ``refuse``.
        """
        if not isinstance(draft_served, bool):
            raise InputError(f"draft_served must be a bool, got {draft_served!r}")
        self._proposed = entry = Resolved(self._find(decision).step, None, "", draft_served, refused=True)
        return entry

    def apply(self, entry: Decision | Resolved) -> None:
        """Let a proposal take effect that the caller has written to a journal; the ``journal`` callback is not called.

        Parameters
        ----------
        entry: the latest proposal of this router. Nothing else may have happened since: it would stand earlier in the
            journal, and could have led to another proposal.
        """
        if entry is None or entry is not self._proposed:
            raise StaleProposal(f"{entry!r} is not the latest proposal of this router: propose again, then apply")
        if isinstance(entry, Decision):
            self._decided(entry)
        else:
            self._settle(entry)

    def _decided(self, decision: Decision) -> None:
        self._proposed = None
        self._draws.pop()
        self._route.decided(decision)
        if decision.ticket:
            self._tickets.done(decision.epoch, decision.ticket)

    def _record(self, entry: Resolved) -> None:
        self._write(entry)
        self._settle(entry)

    def _settle(self, entry: Resolved) -> None:
        self._proposed = None
        decision = self._route.find(entry.step)
        self._route.settle(cast(Decision, decision), entry)  # found when it was proposed

    def warm_start(self, rows: Iterable[tuple[float | Mapping[str, float], float]]) -> None:
        """Feed labelled history: ``(uncertainty, loss)`` for every row, before the first decision.

        It counts like rounds in which every query went to the expert. The promise then assumes
        that history and traffic come from the same distribution.
        """
        several = bool(self._route.score_names)
        self._learn(
            [
                Labelled(self._all_scores(u) if several else (fraction(u, "uncertainty"),), fraction(loss, "loss"))
                for u, loss in rows
            ]
        )

    def warm_start_from(self, entries: Iterable[Entry]) -> None:
        """Feed the whole journal of an older game, round by round as it was decided, before the first decision.

        Drafts that were kept belong to it; audited rounds alone are harder than the traffic (MATH section 3). Of a game
        with several epochs the last one counts. The promise then assumes that it and the traffic have the same
        distribution.

        Parameters
        ----------
        entries: the journal from its first entry on, for example what ``read_journal`` gives.
        """
        floor, scores = self._route.floor, max(1, len(self._route.score_names))
        rows = labelled_rows(entries, floor or 1.0, scores)
        for row in rows:
            if len(row.uncertainties) != scores:
                raise InputError(f"that game has {len(row.uncertainties)} scores, and this router has {scores}")
            if row.least_propensity < floor:
                raise InputError(
                    f"that game called the expert with a probability of {row.least_propensity:g}, and this router "
                    f"never goes below {floor:g}: give it an exploration with a lower floor, or feed a table of that "
                    "game (bpac export --format table)"
                )
        self._learn(rows)

    def _learn(self, rows: list[Labelled]) -> None:
        if self.step:
            raise InputError(f"history comes before the first decision, and {self.step} were made: start a new router")
        for row in rows:
            self._write(row)
            self._route.learned(row)

    def certificate(self) -> Certificate:
        """Bounds on the loss served so far, valid whenever you look (MATH section 7)."""
        return self._route.certificate()

    def log_wealth(self, threshold: float) -> float:
        """Log-wealth of those who bet that a threshold is safe; certified at ``log(1/alpha)``."""
        self._route.charge()
        wealth = getattr(self._route.game, "wealth", self._route.game)
        if not hasattr(wealth, "log_wealth"):
            raise InputError(f"{type(self.settings.policy).__name__} keeps no wealth that belongs to one threshold")
        return float(wealth.log_wealth(fraction(threshold, "threshold")))

    def worth_grading(self, decision: Decision) -> bool:
        """Whether the loss of an audit could still lift a threshold; if not, it may be forfeited at no price.

        A loss counts for the thresholds above its score only. Where those who bet on them have lost all but a share
        ``alpha`` of what they had, such a threshold is not going to be certified, and it makes no difference whether
        the loss is known or counts as 1. Rounds that wait for their outcome are taken to be won.

        >>> router = Router(epsilon=0.05, seed=1)
        >>> for _ in range(30):
        ...     router.observe(router.decide(0.6), loss=1.0)
        >>> [router.worth_grading(router.decide(uncertainty)) for uncertainty in (0.3, 0.9)]
        [True, False]
        """
        return self._worth.of(decision, self._route)

    def game_state(self) -> dict[str, Any]:
        """The betting game of this epoch, as a snapshot would keep it."""
        self._route.charge()
        return self._route.game.state()

    def summary(self) -> dict[str, Any]:
        """Where the route stands, as JSON values."""
        route = self._route
        certificate = route.certificate()
        return {
            "policy": type(self.settings.policy).__name__,
            "epsilon": self.settings.epsilon,
            "alpha": self.settings.alpha,
            "steps": route.step,
            "threshold": self.threshold,
            "expert_calls": route.expert_calls,
            "expert_call_rate": route.expert_calls / route.step if route.step else None,
            "owed": len(route.owed),
            "forfeits": dict(route.forfeits),
            "epoch": route.epoch,
            "alarm": route.drift.alarm.level if route.drift else None,
            "doubt": route.drift.doubts if route.drift else None,
            "forfeit_share": route.forfeit_share,
            "refused": route.refusals,
            "withdrawn": route.withdrawals,
            "certificate": asdict(certificate) | {"average_upper": certificate.average_upper},
        }

    def snapshot(self) -> dict[str, Any]:
        """The state as JSON values, with which a later start need not read the whole journal."""
        return take_snapshot(self._route)

    @classmethod
    def rebuild(
        cls,
        entries: Iterable[Entry],
        *,
        snapshot: object = None,
        seed: int | None = None,
        coins: Coins | None = None,
        journal: Write | None = None,
    ) -> "Router":
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

    def trial(self) -> "Router":
        """A router like this one to try out what may come: it has no journal, and no query is under way there."""
        route = load_snapshot(self.snapshot())
        if route.running:
            route.stopped()
        router = type(self).__new__(type(self))
        router._start(route, 0, None, None)
        return router

    def _find(self, decision: object) -> Decision:
        """The recorded round that a caller means, or an error that says why there is none."""
        if not isinstance(decision, Decision):
            raise ObservationError(f"observe and forfeit take the Decision that decide returned, got {decision!r}")
        step = decision.step
        found = self._route.find(step)
        if found is not None:
            if found != decision:
                raise UnknownStep(f"this router decided step {step} differently: hand in the Decision it returned")
            return found
        if not 1 <= step <= self.step:
            raise UnknownStep(f"step {step} was never decided here: this router has made {self.step} decisions")
        if not decision.call_expert:
            raise NotAudited(f"the draft of step {step} was kept: its loss is never seen and must not be reported")
        raise AlreadyResolved(f"step {step} has its outcome already: a second one is refused")

    def _all_scores(self, uncertainty: object) -> tuple[float, ...]:
        names = self._route.score_names
        if not isinstance(uncertainty, Mapping) or set(uncertainty) != set(names):
            raise InputError(f"this router needs a score for each of {', '.join(names)}, got {uncertainty!r}")
        return tuple(fraction(uncertainty[name], name) for name in names)

    def _more_draws(self, step: int) -> list[float]:
        """Draws for this step and some that follow it; what commits to them is written first."""
        coins = self._coins
        commitment = coins.commitment(step) if isinstance(coins, CommittedCoins) else None
        if commitment is not None:
            self._write(commitment)
            self._route.committed()
        return coins.draws(step)

    def _write(self, entry: Entry) -> None:
        if self._journal is not None:
            self._journal(entry)
