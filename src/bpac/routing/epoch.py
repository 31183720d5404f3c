"""An epoch: one bet within a game, and all of the game's state that a drift alarm resets.

1. The *bettor* turns the outcomes of rounds into a threshold.
2. The *rates* are the probabilities with which accepted drafts are audited. Rates that learn follow the rounds, too.
3. Where queries take tickets, the bettor sees rounds in the order of arrival (``by_arrival``).
4. The *drift alarm* watches the threshold in force. It may raise the rate; if it rings, the epoch is over.
"""

from typing import Any, cast

from bpac.betting.bounds.certificate import ServedLoss
from bpac.betting.drift.drift import Drift
from bpac.betting.ledgers.ledger import Account
from bpac.betting.payoff import Terms
from bpac.routing.bettors import ByArrival, Candidates, SplitScores
from bpac.routing.cascade.bettor import CascadeBettor
from bpac.routing.cascade.rates import CascadeRates
from bpac.routing.decision import Decision
from bpac.routing.exploration.gain_schedules import WhileItPays
from bpac.routing.exploration.learned_rates import LearnedRates, Prospects
from bpac.routing.exploration.schedules import Rates
from bpac.routing.journal.entries import Expected, Labelled
from bpac.routing.learning.rates import CandidateRates
from bpac.routing.rule import decide_query
from bpac.routing.settings import Settings

NOTHING_EXPECTED = Expected()


class Epoch:
    """What is known since the last drift alarm.

    Parameters
    ----------
    settings: the settings of the router.
    terms: the terms of its bets.
    served: the certificate, which outlives all epochs.
    number: of the epoch, from 1.
    start: the step after which it begins; history before the first step lowers it.
    expected: what is expected of its rounds.
    """

    __slots__ = (
        "_busy",
        "_prospects",
        "_rates",
        "_served",
        "_settings",
        "_several",
        "_terms",
        "accounts",
        "bettor",
        "by_arrival",
        "drift",
        "joined_at",
        "joint_rates",
        "learner",
        "number",
        "rate",
        "receiver",
        "scores",
        "start",
        "steady_after",
    )

    def __init__(
        self,
        settings: Settings,
        terms: Terms,
        served: ServedLoss,
        number: int,
        start: int,
        *,
        expected: Expected = NOTHING_EXPECTED,
    ) -> None:
        policy = settings.policy
        self._settings = settings
        self._terms = terms
        self._served = served
        self.number = number
        self.start = start
        self.bettor = policy.start(terms, settings.alpha_of(number), served)
        self._rates: Rates = settings.exploration.start(terms)
        self._several = self.bettor if isinstance(self.bettor, SplitScores | Candidates | CascadeBettor) else None
        # How many scores a query has that arrives now.
        self.scores = len(policy.score_names) if policy.learned is None else 1
        self.joint_rates: CandidateRates | None = None
        if isinstance(self.bettor, CascadeBettor):
            self._rates = CascadeRates(settings.exploration, terms, self.bettor)
        elif isinstance(self._rates, LearnedRates) and isinstance(self.bettor, Candidates):
            self._rates = self.joint_rates = CandidateRates(self._rates.schedule, terms, self.bettor)
        self.learner = self._rates if isinstance(self._rates, LearnedRates) else None
        self._busy = expected.busy
        # What the schedule takes into account; none if it takes nothing into account.
        self._prospects: Prospects | None = None
        if isinstance(self._rates, LearnedRates | CandidateRates | CascadeRates):
            schedule, self._prospects = settings.exploration, self._rates.prospects
            self._prospects.audit_price, self._prospects.rounds = expected.audit_price, expected.rounds
            if isinstance(schedule, WhileItPays) and schedule.whole_game:
                self._prospects.before = max(start, 0)
        self.drift = Drift(terms, policy.alarm) if policy.alarm else None
        self.by_arrival: ByArrival | None = None
        # A query with a later ticket has all scores; one with an earlier ticket may not have the latest.
        self.joined_at = 0
        # The account that sees decisions, and all accounts that see outcomes, in this order.
        self.receiver: Account[Decision]
        self.accounts: tuple[Account[Decision], ...]
        self._set_accounts(self.bettor)
        # The exploration rate of the next query (ρ), and the step from which on it no longer changes by itself.
        self.rate = 0.0
        self.steady_after = start + self._rates.steady_after
        self.set_rate(start)

    @property
    def active_score(self) -> int:
        """Which of several scores decides next."""
        return self._several.active if self._several is not None else 0

    def join(self, tickets: int, gain: float | None) -> None:
        """Let the next learned score bet on the queries that arrive from here on.

        Parameters
        ----------
        tickets: number of the last ticket that was given out.
        gain: how much more traffic it could accept, by an estimate that was made when it was fitted; none if there is
            no such score, and its share of α goes back to the score that was there first.
        """
        candidates = cast(Candidates, self.bettor)  # others have no score that joins
        if gain is None:
            candidates.take_back()
        else:
            candidates.join()
        self.scores += 1
        if self.joint_rates is not None:
            self.joint_rates.join(gain)
        if self.by_arrival is not None:
            self.by_arrival.join(tickets)
            self.joined_at = tickets

    def scores_at(self, ticket: int) -> int:
        """How many scores a query of this epoch has; ticket 0 arrives now."""
        return self.by_arrival.scores_at(ticket) if ticket and self.by_arrival is not None else self.scores

    def set_rate(self, step: int) -> None:
        """Find the exploration rate of the query after this step.

        It must be called whenever the rate may have changed: it is kept, because every query asks for it.
        """
        rate = self._terms.floor if self._busy else self._rates.rate(step + 1 - self.start)
        drift = self.drift
        self.rate = rate if drift is None or rate >= drift.careful_rate else drift.careful_rate

    def expect(self, expected: Expected, step: int) -> None:
        """Use the rate that follows from what is expected.

        Parameters
        ----------
        expected: what is expected.
        step: the number of decisions made.
        """
        self._busy, prospects = expected.busy, self._prospects
        if prospects is not None:
            before = prospects.audit_price, prospects.rounds
            prospects.audit_price, prospects.rounds = now = expected.audit_price, expected.rounds
            if now == before:
                pass  # nothing else changes the rate before the next look
            elif self.learner is not None:
                self.learner.look(self.bettor.threshold)
            elif self.joint_rates is not None:
                self.joint_rates.look()
        self.set_rate(step)

    def follow_arrivals(self) -> None:
        """Put the order of arrival between the rounds and the bettor, unless the policy need not know it."""
        policy = self._settings.policy
        if not policy.in_order:
            return
        self.by_arrival = ByArrival(
            self.bettor,
            self._terms,
            self.scores,
            commutes=policy.commutes,
            weighs=policy.passes_over,
            most_held=self._settings.max_owed,
        )
        self._set_accounts(self.by_arrival)

    def learned(self, row: Labelled, step: int) -> None:
        """Apply a row of history as a round.

        Parameters
        ----------
        row: the row.
        step: its number, 0 for the first row and one less for each that follows.
        """
        self.start -= 1
        self.steady_after -= 1
        policy, certain = self._settings.policy, row.propensity == 1.0 and row.least_propensity == 1.0
        closed = decide_query(0, 0.0, 0.0, self._rates.rate(1 - step), 0.0, False, policy.certain_while_closed)
        decision = Decision(
            step=step,
            uncertainty=row.uncertainties[0],
            threshold=0.0,
            propensity=row.propensity,
            least_propensity=closed.least_propensity if certain else row.least_propensity,
            call_expert=row.loss is not None or row.refused,
            serve_draft=False,
            uncertainties=row.uncertainties if policy.score_names or policy.learned else (),
        )
        for account in self.accounts[1:]:  # nothing was served
            account.decided(decision)
            if row.refused:
                account.replace(decision, decision.at_zero(), self._terms.fair_loss, charged=False)
            elif row.loss is not None:
                account.resolve(decision, row.loss)
        self.set_rate(0)

    def state(self) -> dict[str, Any]:
        """All that a later start needs, as JSON values."""
        learner = self.learner or self.joint_rates
        return {
            "by_arrival": self.by_arrival.state() if self.by_arrival else None,
            "epoch": self.number,
            "epoch_start": self.start,
            "game": self.bettor.state(),
            "learner": learner.state() if learner else None,
            "drift": self.drift.state() if self.drift else None,
        }

    def load(self, state: dict[str, Any], step: int) -> None:
        """Take over a state that ``state`` returned.

        Parameters
        ----------
        state: what ``state`` returned.
        step: the number of decisions made when it did.
        """
        self.bettor.load(state["game"])
        if isinstance(self.bettor, Candidates):
            self.scores = len(self.bettor.wealths)
        if state["by_arrival"] is not None:
            self.follow_arrivals()
        if self.by_arrival is not None:
            self.by_arrival.load(state["by_arrival"])
            self.joined_at = self.by_arrival.joined_at
        learner = self.learner or self.joint_rates
        if learner:
            learner.load(state["learner"])
        if self.drift:
            self.drift.load(state["drift"])
        self.set_rate(step)

    def _set_accounts(self, receiver: Account[Decision]) -> None:
        learner = self.learner or self.joint_rates
        self.receiver = receiver
        self.accounts = (self._served, receiver) if learner is None else (self._served, receiver, learner)
