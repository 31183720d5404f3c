"""Exploration where several scores compete: it asks for what any of them could gain."""

import math
from typing import Any

from bpac.betting.ledgers.ledger import Round
from bpac.betting.payoff import Terms
from bpac.routing.bettors.candidates import Candidates
from bpac.routing.exploration.learned_rates import LearnedRates, Prospects, Schedule

# A score that joins may ask for this multiple of its estimated gain: estimates from few samples are rough.
MOST_OF_ESTIMATE = 2.0


class ScoreRates(LearnedRates):
    """Traffic and losses by level of one of several scores.

    Parameters
    ----------
    schedule, terms: as for ``LearnedRates``.
    score: index of the score.
    """

    def __init__(self, schedule: Schedule, terms: Terms, score: int) -> None:
        super().__init__(schedule, terms)
        self._score = score

    def add(self, decision: Round, loss: float) -> None:
        """Book a loss."""
        self.book(decision.uncertainties[self._score], decision.propensity, loss)

    def remove(self, decision: Round, loss: float) -> None:
        """Take a booked loss out again."""
        self.book(decision.uncertainties[self._score], decision.propensity, loss, -1)


class CandidateRates:
    """The rate that the score with most to gain asks for.

    The gain of a score is how much more of the traffic looks safe by it than is accepted now, by whichever score is in
    force. Without losses everything looks safe, so a score that has just joined would always ask for audits: it asks
    for no more than the gain that was estimated when it was fitted justifies.

    Parameters
    ----------
    schedule, terms: as for ``LearnedRates``.
    bettor: the scores that compete.
    """

    def __init__(self, schedule: Schedule, terms: Terms, bettor: Candidates) -> None:
        self._schedule = schedule
        self._terms = terms
        self._bettor = bettor
        self._scores = [ScoreRates(schedule, terms, 0)]
        self._rate = schedule.most
        self._most_gains = [math.inf]
        self.prospects = Prospects()

    @property
    def steady_after(self) -> int:
        """From the start: only a look changes the rate."""
        return 0

    def rate(self, step: int) -> float:
        """Least probability of calling the expert in this step of the epoch."""
        return self._rate

    def join(self, gain: float) -> None:
        """Follow the next score from here on.

        Parameters
        ----------
        gain: how much more traffic it could accept, by an estimate that was made when it was fitted.
        """
        self._most_gains.append(MOST_OF_ESTIMATE * gain)
        self._scores.append(ScoreRates(self._schedule, self._terms, len(self._scores)))
        self.look()

    def decided(self, decision: Round) -> None:
        """Count the traffic, and look at the rate now and then."""
        self.follow(decision)

    def follow(self, decision: Round) -> bool:
        """Count the traffic; true if the rate may have changed."""
        due, least = False, decision.least_propensity
        for score, uncertainty in zip(self._scores, decision.uncertainties, strict=False):
            recent = score.recent
            recent.append(uncertainty)
            score.audits += least
            if len(recent) >= score.pause:
                due = True
        if due:
            self.look()
        return due

    def resolve(self, decision: Round, loss: float) -> None:
        """Book a loss by every score that the round carries."""
        for score, _ in zip(self._scores, decision.uncertainties, strict=False):
            score.resolve(decision, loss)

    def charge(self, decision: Round) -> None:
        """Book a loss of 1."""
        self.resolve(decision, 1.0)

    def refund(self, decision: Round, loss: float) -> None:
        """Replace the charge by the true loss."""
        for score, _ in zip(self._scores, decision.uncertainties, strict=False):
            score.refund(decision, loss)

    def forfeit(self, decision: Round) -> None:
        """Leave the charge where it is."""

    def replace(self, decision: Round, instead: Round, loss: float, *, charged: bool) -> None:
        """Book the loss of the other round instead of the charge."""
        for score, _ in zip(self._scores, decision.uncertainties, strict=False):
            score.replace(decision, instead, loss, charged=charged)

    def state(self) -> dict[str, Any]:
        """All that a later start needs, as JSON values."""
        scores = [score.state() for score in self._scores]
        return {"rate": self._rate, "most_gains": self._most_gains[1:], "scores": scores}

    def load(self, state: dict[str, Any]) -> None:
        """Take over a state that ``state`` returned."""
        self._scores = [ScoreRates(self._schedule, self._terms, index) for index in range(len(state["scores"]))]
        for score, part in zip(self._scores, state["scores"], strict=True):
            score.load(part)
        self._rate, self._most_gains = state["rate"], [math.inf, *state["most_gains"]]

    def look(self) -> None:
        """Ask the schedule for the rate of the coming rounds, once for each score."""
        for score in self._scores:
            score.collect()
        bettor, in_force = self._bettor, self._scores[self._bettor.active]
        accepted = in_force.accepted(bettor.threshold) / max(in_force.rounds, 1)
        rates = []
        for score, most in zip(self._scores, self._most_gains, strict=True):
            # While nothing is accepted or nothing is known of a score, there is everything to gain.
            known = accepted and score.rounds
            gain = (score.looks_safe() / score.rounds - accepted) / accepted if known else math.inf
            rates.append(self.prospects.wanted(self._schedule, min(gain, most), score.rounds, score.audits))
        self._rate = max(rates)
