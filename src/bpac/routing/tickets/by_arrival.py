"""Lets a bettor see rounds in the order in which their queries arrived (MATH section 12; rules in ``arrivals.py``)."""

from bisect import bisect_left
from typing import Any

from bpac.betting.payoff import Terms
from bpac.routing.bettors.bettor import Bettor
from bpac.routing.decision import Decision
from bpac.routing.tickets.arrivals import CHARGED, FORFEIT, LOSS, PENDING, REFUSED, Arrivals, Held, cut_off_rounds

# How often the rounds held up behind open tickets are weighed against the charges, in held rounds.
WEIGH_EVERY = 16
# Steps of rounds that were never decided, because their ticket was passed over, lie below this.
NO_STEP = -(1 << 40)


class ByArrival:
    """Passes rounds to the bettor in the order of arrival, and delays those that come too early.

    Parameters
    ----------
    bettor: the bettor of this epoch.
    terms: the terms of the bets.
    scores: how many scores every decision has, where there are several.
    commutes: whether the bettor can take a charge back.
    weighs: whether open tickets are passed over where the rounds behind them are worth more.
    most_held: how many rounds may be held; beyond it the oldest open ticket is passed over, so that a draft that never
        ends does not fill the memory.
    """

    def __init__(
        self, bettor: Bettor, terms: Terms, scores: int, *, commutes: bool, weighs: bool, most_held: int
    ) -> None:
        self._bettor = bettor
        self._terms = terms
        self._scores = scores
        # Learned scores that joined since tickets are in use: the last ticket given out before each.
        self._joined: list[int] = []
        self._commutes = commutes
        self._weighs = weighs
        self._most_held = most_held
        self.arrivals = Arrivals()
        self.passes = 0
        # Rounds beyond the prefix, by step; and rounds whose charge stays, whatever their outcome.
        self._held: dict[int, Held] = {}
        self._had: set[int] = set()
        # The latest round, if the bettor was charged for it before the route charges it.
        self._early = 0

    def decided(self, decision: Decision) -> None:
        """Let the bettor see the round, or hold it back."""
        number, arrivals = decision.ticket, self.arrivals
        if number:
            if number != arrivals.reached + 1 or arrivals.held or arrivals.overdue or arrivals.passed:
                self._done(number, Held(decision))
                return
            arrivals.reached = number  # what ``_done`` does in nearly every round of a quiet gateway, without the calls
        self._bettor.decided(decision)

    def resolve(self, decision: Decision, loss: float) -> None:
        """The loss of a round that was not charged is known."""
        if decision.step == self._early:
            self._early = 0
            self._bettor.refund(decision, loss)
        elif not (self._held or self._had) or not self._noted(decision, LOSS, loss):
            self._bettor.resolve(decision, loss)

    def charge(self, decision: Decision) -> None:
        """The loss of the round is not known in time."""
        if not self._was_early(decision) and not self._noted(decision, CHARGED):
            self._bettor.charge(decision)

    def refund(self, decision: Decision, loss: float) -> None:
        """The loss of a charged round is known later."""
        if not self._noted(decision, LOSS, loss):
            self._bettor.refund(decision, loss)

    def forfeit(self, decision: Decision) -> None:
        """The loss of a charged round is given up."""
        if not self._noted(decision, FORFEIT):
            self._bettor.forfeit(decision)

    def replace(self, decision: Decision, instead: Decision, loss: float, *, charged: bool) -> None:
        """The round counts as another one with that loss."""
        early = self._was_early(decision)
        if not self._noted(decision, REFUSED, loss):
            self._bettor.replace(decision, instead, loss, charged=charged or early)

    def join(self, tickets: int) -> None:
        """One more score, which the queries that arrive from here on have.

        Parameters
        ----------
        tickets: number of the last ticket that was given out before it.
        """
        self._joined.append(tickets)

    @property
    def joined_at(self) -> int:
        """The last ticket that was given out before the latest score joined; 0 if all queries have all scores."""
        return self._joined[-1] if self._joined else 0

    def scores_at(self, number: int) -> int:
        """How many scores the query with this ticket has."""
        return self._scores + bisect_left(self._joined, number)  # the numbers of tickets only grow

    def withdrawn(self, number: int) -> None:
        """A ticket is withdrawn."""
        self._done(number, None)

    def overdue(self, number: int) -> None:
        """A ticket no longer holds up those behind it."""
        if number > self.arrivals.reached:  # it may have been passed over before
            self.arrivals.overdue.add(number)
            self._advance()

    def cut_off(self) -> None:
        """Whatever is under way will not be decided: charge the earliest ticket permanently, and restart the numbering.

        Of the rounds beyond it those that cost something stay, and the others are forgotten. Those whose outcome is not
        known keep their charge permanently: they were decided in time, so they are likelier to win than others, and
        such a win must not count.
        """
        held, first = self.arrivals.held, self.arrivals.reached + 1
        self.start()
        for round_ in cut_off_rounds(held, range(first, max(held, default=first) + 1), Held.is_harmless):
            if round_ is None:
                self._pass_over(self._scores)  # ``start`` has made it the number of all
                continue
            if round_.outcome == CHARGED:
                round_.outcome = FORFEIT
                self._had.add(round_.decision.step)
            self._play(round_)

    def start(self) -> None:
        """Number tickets from 1: none is under way."""
        self.arrivals = Arrivals()
        self._held.clear()
        self._scores += len(self._joined)  # every query that arrives from here on has them
        self._joined.clear()

    def state(self) -> dict[str, Any]:
        """All that a later start needs, as JSON values."""
        joined = {"scores": self._scores, "joined": list(self._joined)} if self._joined else {}
        return {"passes": self.passes, "had": sorted(self._had), "arrivals": self.arrivals.state(), **joined}

    def load(self, state: dict[str, Any]) -> None:
        """Take over a state that ``state`` returned."""
        self.passes, self._had = state["passes"], set(state["had"])
        self._scores, self._joined = state.get("scores", self._scores), list(state.get("joined", ()))
        self.arrivals.load(state["arrivals"])
        self._held = {held.decision.step: held for held in self.arrivals.held.values() if held is not None}

    def _noted(self, decision: Decision, outcome: str, loss: float = 0.0) -> bool:
        """Keep the outcome of a round that the bettor does not know; false if it does."""
        held = self._held.get(decision.step)
        if held is None:
            return decision.step in self._had
        # The decision of a cascade now carries what the audit found.
        held.decision, held.outcome, held.loss = decision, outcome, loss
        return True

    def _was_early(self, decision: Decision) -> bool:
        early = decision.step == self._early
        if early:
            self._early = 0
        return early

    def _done(self, number: int, held: Held | None) -> None:
        arrivals = self.arrivals
        arrivals.overdue.discard(number)
        if number in arrivals.passed:
            arrivals.passed.discard(number)
            if self._commutes:
                # The round and its own charge first: a threshold must not latch on a moment without either charge.
                self._play(held)
                self._bettor.refund(self._worst(self.scores_at(number)), 0.0)
            elif held is not None:
                self._had.add(held.decision.step)
        elif number == arrivals.reached + 1:
            arrivals.reached = number
            more = bool(arrivals.held or arrivals.overdue)
            self._play(held, more=more)
            if more:
                self._advance()
        else:
            arrivals.held[number] = held
            if held is not None:
                self._held[held.decision.step] = held
            if self._weighs and not len(arrivals.held) % WEIGH_EVERY:
                self._weigh()
            while len(arrivals.held) > self._most_held:
                self.overdue(arrivals.reached + 1)

    def _advance(self) -> None:
        """Let the bettor see the rounds whose earlier tickets are all done or overdue."""
        arrivals = self.arrivals
        while True:
            number = arrivals.reached + 1
            if number in arrivals.overdue:
                arrivals.overdue.discard(number)
                arrivals.passed.add(number)
                self._pass_over(self.scores_at(number))
            elif number in arrivals.held:
                self._play(arrivals.held.pop(number))
            else:
                return
            arrivals.reached = number

    def _weigh(self) -> None:
        """Pass over open tickets if the rounds held up behind them have won more than the charges take."""
        arrivals, balance, missing = self.arrivals, 0.0, []
        for number in range(arrivals.reached + 1, max(arrivals.held) + 1):
            if number not in arrivals.held:
                balance -= 1.0
                missing.append(number)
            elif (held := arrivals.held[number]) is not None and held.is_harmless():
                # What a bet on the round wins, as a share of what it loses at worst.
                balance += self._terms.epsilon / self._terms.payoff_bound(held.decision.least_propensity)
                if balance > 0.0:
                    arrivals.overdue.update(missing)
                    self._advance()
                    return

    def _play(self, held: Held | None, *, more: bool = True) -> None:
        """Let the bettor see a round, and what came of it.

        Parameters
        ----------
        held: the round; none for a ticket that was withdrawn.
        more: whether more rounds may follow at once. An audit without an outcome is charged before they do: its loss
            must not be left out of what they see.
        """
        if held is None:
            return
        decision, bettor = held.decision, self._bettor
        self._held.pop(decision.step, None)
        bettor.decided(decision)
        if held.outcome == LOSS:
            bettor.resolve(decision, held.loss)
        elif held.outcome == REFUSED:
            bettor.replace(decision, decision.at_zero(), held.loss, charged=False)
        elif decision.call_expert and (more or held.outcome != PENDING):
            bettor.charge(decision)
            if held.outcome == FORFEIT:
                bettor.forfeit(decision)
            elif held.outcome == PENDING:
                self._early = decision.step

    def _pass_over(self, scores: int) -> None:
        """Charge the bettor the worst that the round of an open ticket could cost at any threshold.

        Parameters
        ----------
        scores: how many scores its query has; others must not be charged, because they get no refund.
        """
        self.passes += 1
        worst = self._worst(scores)
        if self._commutes:
            self._bettor.charge(worst)
        else:
            self._bettor.decided(worst)
            self._bettor.charge(worst)
            self._bettor.forfeit(worst)

    def _worst(self, scores: int) -> Decision:
        """A round that is charged at every threshold, at the least propensity there is."""
        least = self._terms.floor or 1.0
        return Decision(
            step=NO_STEP - self.passes,
            uncertainty=0.0,
            threshold=0.0,
            propensity=least,
            least_propensity=least,
            call_expert=True,
            serve_draft=False,
            uncertainties=(0.0,) * scores,
        )
