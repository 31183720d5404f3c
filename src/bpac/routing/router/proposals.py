"""What a router would write next: entries that are checked, and that have not taken effect."""

from collections.abc import Callable, Mapping

from bpac.arguments import fraction, text
from bpac.errors import AlreadyResolved, InputError, NotAudited, ObservationError, StaleProposal, UnknownStep
from bpac.routing.coins import Coins, CommittedCoins
from bpac.routing.decision import Decision
from bpac.routing.journal.entries import Entry, Resolved
from bpac.routing.learning.features import Feature, Features, checked_features
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

    __slots__ = ("_coins", "_draws", "_last_step", "_route", "_tickets", "_write", "latest")

    def __init__(self, route: Route, tickets: Tickets, coins: Coins, write: Callable[[Entry], object]) -> None:
        self._route = route
        self._tickets = tickets
        self._coins = coins
        self._write = write
        # The coins of the next steps in reverse order: the first belongs to the last step that has one.
        self._draws: list[float] = []
        self._last_step = 0
        # The only proposal that may still be applied: nothing has happened since it was made.
        self.latest: Decision | Resolved | None = None

    def decision(
        self, uncertainty: float | Mapping[str, float], ticket: Ticket | None, features: Features | None = None
    ) -> Decision:
        """The next decision."""
        route = self._route
        # An audit without an outcome must be charged before the threshold is read.
        if route.uncharged is not None:
            route.charge()
        uncertainties: tuple[float, ...] = ()
        if route.score_names:
            uncertainties = all_scores(route, uncertainty)
        elif type(uncertainty) is not float or not 0.0 <= uncertainty <= 1.0:
            uncertainty = fraction(uncertainty, "uncertainty")
        learning = route.learning
        known: tuple[Feature, ...] = ()
        if learning is not None or features is not None:
            known = checked_features(features, route.feature_names)
            while learning is not None and learning.due:
                self._learn(learning)
        step = route.step + 1
        if step > self._last_step:
            self._draw(step)
        number = seen = 0
        if ticket is None and not route.running:
            # The threshold first, then the step: a threshold may be stale, never from the future.
            current = route.current
            threshold, rate, epoch = current.bettor.threshold, current.rate, current.number
            if learning is not None:
                uncertainties = learning.scores(uncertainty, known, len(learning.joined) + 1)  # type: ignore[arg-type]
            if uncertainties:
                uncertainty = uncertainties[current.active_score]
        else:
            number, epoch, threshold, rate, score, seen = self._tickets.terms(ticket)
            if learning is not None:
                # A query that arrived before a score had joined does not have it; nor has one of an earlier epoch any.
                score, count = (score, route.current.scores_at(number)) if epoch == route.epoch else (0, 1)
                uncertainties = learning.scores(uncertainty, known, count)  # type: ignore[arg-type]
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
