"""What a router would write next: entries that are checked, and that have not taken effect."""

from collections.abc import Callable, Mapping
from typing import Any

from bpac.arguments import fraction, text
from bpac.errors import AlreadyResolved, InputError, NotAudited, ObservationError, StaleProposal, UnknownStep
from bpac.routing.cascade.bettor import CascadeBettor
from bpac.routing.cascade.policy import Cascade
from bpac.routing.cascade.recorded_walks import RecordedWalk, decide_walk
from bpac.routing.cascade.walk import Walk
from bpac.routing.coins import Coins, CommittedCoins, DitheringCoins, SeededCoins
from bpac.routing.decision import Decision
from bpac.routing.dithering import dithered
from bpac.routing.journal.entries import Entry, Resolved
from bpac.routing.learning.features import Features, checked_features
from bpac.routing.learning.learning import Learning
from bpac.routing.route import Route
from bpac.routing.rule import decide_query
from bpac.routing.tickets.ticket import Ticket
from bpac.routing.tickets.tickets import Tickets


class Proposals:
    """Makes the entries of decisions and outcomes.

    Parameters
    ----------
    route: the state that they follow from.
    tickets: the queries under way.
    coins: the random source.
    write: called with an entry that must stand in the journal before a decision.
    """

    __slots__ = (
        "_coins",
        "_dither_source",
        "_dithers",
        "_draws",
        "_last_dither",
        "_last_step",
        "_route",
        "_tickets",
        "_write",
        "latest",
    )

    def __init__(self, route: Route, tickets: Tickets, coins: Coins, write: Callable[[Entry], object]) -> None:
        self._route = route
        self._tickets = tickets
        self._coins = coins
        self._write = write
        # The coins of the next steps in reverse order: the first belongs to the last step that has one.
        self._draws: list[float] = []
        self._last_step = 0
        # The same for the draws that dither scores. A random source without them leaves them to the operating system.
        self._dithers: list[float] = []
        self._last_dither = 0
        self._dither_source = coins if isinstance(coins, DitheringCoins) else SeededCoins()
        # The only proposal that may still be applied: nothing has happened since it was made.
        self.latest: Decision | Resolved | None = None

    def decision(  # noqa: PLR0912  # it is done for every query, and calls cost
        self, uncertainty: float | Mapping[str, float] | Walk, ticket: Ticket | None, features: Features | None = None
    ) -> Decision:
        """The next decision."""
        route = self._route
        # An audit without an outcome must be charged before the threshold is read.
        if route.uncharged is not None:
            route.charge()
        uncertainties: tuple[float, ...] = ()
        if route.score_names:
            if route.stages:
                return self._of_walk(uncertainty, ticket)
            uncertainties = all_scores(route, uncertainty)
        elif type(uncertainty) is not float or not 0.0 <= uncertainty <= 1.0:
            uncertainty = fraction(uncertainty, "uncertainty")
        step = route.step + 1
        if step > self._last_step:
            if features is not None:
                checked_features(features, route.feature_names)  # bad ones change nothing, and drawing may
            self._draw(step)
        if route.dither:
            uncertainty, uncertainties = self._dithered(step, uncertainty, uncertainties)  # type: ignore[arg-type]  # a number by now
        learning = route.learning
        known: Any = ()
        if learning is not None:
            known, scores = features, learning.quick_scores(uncertainty, features)  # type: ignore[arg-type]
            if scores is None or learning.due:
                known = checked_features(features, route.feature_names)
                while learning.due:
                    self._learn(learning)
                scores = learning.scores(uncertainty, known, learning.count)  # type: ignore[arg-type]
            uncertainties = scores
        elif features is not None:
            checked_features(features, ())  # says that there is no use for them
        number = score = seen = 0
        current = route.current
        if ticket is None and not route.running:
            # The threshold first, then the step: a threshold may be stale, never from the future.
            threshold, rate, epoch = current.bettor.threshold, current.rate, current.number
            if uncertainties:
                score = current.active_score
        else:
            number, epoch, threshold, rate, score, seen = self._tickets.terms(ticket)
            if learning is not None and (number <= current.joined_at or epoch != current.number):
                # A query that arrived before a score had joined does not have it; nor has one of an earlier epoch any.
                if epoch == current.number:
                    count = current.scores_at(number)
                else:
                    score, count = 0, 1
                uncertainties = uncertainties[:count]
            if learning is not None and score in learning.retired:
                uncertainties = learning.with_score(score, uncertainties, known)
        if uncertainties:
            uncertainty = uncertainties[score]
        self.latest = decision = decide_query(
            step,
            uncertainty,  # type: ignore[arg-type]  # a number by now
            threshold,
            rate,
            self._draws[self._last_step - step],
            route.shadow,
            route.certain_while_closed,
            epoch,
            uncertainties,
            number,
            seen,
            known,
        )
        return decision

    def _dithered(
        self, step: int, uncertainty: float, uncertainties: tuple[float, ...]
    ) -> tuple[float, tuple[float, ...]]:
        """The score or the scores of a draft, all lowered by the same draw."""
        width, draw = self._route.dither, self.dither(step)
        if uncertainties:
            return uncertainty, tuple(dithered(score, width, draw) for score in uncertainties)
        return dithered(uncertainty, width, draw), ()

    def dither(self, step: int) -> float:
        """The draw that dithers the scores of a step, or of a row of history, whose step is below 0."""
        behind = self._last_dither - step
        if not 0 <= behind < len(self._dithers):
            self._dithers = self._dither_source.dithers(step)
            self._last_dither = step + len(self._dithers) - 1
            behind = len(self._dithers) - 1
        return self._dithers[behind]

    def _of_walk(self, walk: object, ticket: Ticket | None) -> Decision:
        """The decision of a query that has passed through the models of a cascade."""
        route, policy = self._route, self._route.settings.policy
        if not isinstance(walk, Walk) or walk.next_stage is not None:
            raise InputError(f"this router decides queries whose walk has ended: ask its next model, got {walk!r}")
        if walk.issued != (ticket is not None) or (ticket is not None and ticket != walk.terms):
            raise InputError("pass the ticket with which the walk began, and none if it began without one")
        if ticket is None and route.running:
            raise InputError("queries take tickets here: call arrive() first, and pass on what it returns")
        step = route.step + 1
        if step > self._last_step:
            self._draw(step)
        draw = self._draws[self._last_step - step]
        terms = walk.terms if ticket is None else self._tickets.terms(ticket)
        number, epoch, threshold, rate, rule, seen = terms
        bettor = route.bettor
        if ticket is None and epoch != route.epoch:
            # An alarm has rung since. Without a ticket the query arrives now, and nothing is certified yet.
            epoch, threshold, rate, rule, seen = route.epoch, 0.0, 1.0, 0, route.entries
        levels: tuple[float, ...] = ()
        full_propensity = 0.0
        if epoch == route.epoch and isinstance(bettor, CascadeBettor) and isinstance(policy, Cascade):
            levels = bettor.charge_levels(walk.answers, seen)
            full_propensity = policy.full_propensity(bettor.rules[rule], rate)
        recorded = RecordedWalk(walk.value, walk.accepted or 0, tuple(walk.answers), levels, full_propensity)
        terms = Ticket(number, epoch, threshold, rate, rule, seen)
        self.latest = decision = decide_walk(terms, recorded, step, draw, route.stages, shadow=route.shadow)
        return decision

    def outcome(self, decision: Decision, loss: float) -> Resolved:
        """The entry that reports a loss."""
        loss = fraction(loss, "loss")
        self.latest = entry = Resolved(self._find(decision).step, loss)
        return entry

    def forfeit(self, decision: Decision, cause: str, draft_served: bool) -> Resolved:
        """The entry that gives an outcome up."""
        cause = text(cause, "cause")
        if not isinstance(draft_served, bool):
            raise InputError(f"draft_served must be a bool, got {draft_served!r}")
        step = self._find(decision).step
        if step in self._route.given_up:
            raise AlreadyResolved(f"step {step} was given up already; only its loss is still accepted")
        self.latest = entry = Resolved(step, None, cause, draft_served)
        return entry

    def refusal(self, decision: Decision, draft_served: bool) -> Resolved:
        """The entry that reports a refusal of the expert."""
        if not isinstance(draft_served, bool):
            raise InputError(f"draft_served must be a bool, got {draft_served!r}")
        self.latest = entry = Resolved(self._find(decision).step, None, "", draft_served, refused=True)
        return entry

    def check(self, entry: object) -> None:
        """Raise ``StaleProposal`` unless this is the latest proposal and nothing has happened since."""
        taken = isinstance(entry, Decision) and entry.step != self._route.step + 1
        if entry is None or entry is not self.latest or taken:
            raise StaleProposal(f"{entry!r} is not the latest proposal of this router: propose again, then apply")

    def _find(self, decision: object) -> Decision:
        """The recorded round of a decision, or an error that says why there is none."""
        if not isinstance(decision, Decision):
            raise ObservationError(f"observe and forfeit take the Decision that decide returned, got {decision!r}")
        step, made = decision.step, self._route.step
        found = self._route.find(step)
        if found is not None:
            if found != decision:
                raise UnknownStep(f"this router decided step {step} differently: pass the Decision that it returned")
            return found
        if not 1 <= step <= made:
            raise UnknownStep(f"step {step} was never decided here: this router has made {made} decisions")
        if not decision.call_expert:
            raise NotAudited(f"the draft of step {step} was kept: its loss is never seen and must not be reported")
        raise AlreadyResolved(f"step {step} already has an outcome")

    def _learn(self, learning: Learning) -> None:
        """Write the next learned score, which has to stand in the journal before the queries that have it."""
        entry = learning.next(self._tickets.given)
        if entry is not None:
            self._write(entry)
            self._route.joined(entry)

    def _draw(self, step: int) -> None:
        """Draw for this step and some that follow it; what commits to the draws is written first."""
        coins = self._coins
        commitment = coins.commitment(step) if isinstance(coins, CommittedCoins) else None
        if commitment is not None:
            self._write(commitment)
            self._route.committed()
        self._draws = coins.draws(step)
        self._last_step = step + len(self._draws) - 1


def all_scores(route: Route, uncertainty: object) -> tuple[float, ...]:
    """One score for each name of a router that has several, in their order."""
    names = route.score_names
    if not isinstance(uncertainty, Mapping) or set(uncertainty) != set(names):
        raise InputError(f"this router needs a score for each of {', '.join(names)}, got {uncertainty!r}")
    return tuple(fraction(uncertainty[name], name) for name in names)
