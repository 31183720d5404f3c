"""Exploration where several scores compete: it asks for what any of them could gain."""

import math
from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import compress
from operator import add as plus
from typing import Any, TypeVar, cast

from bpac.betting.ledgers.ledger import Ledger, Round
from bpac.betting.payoff import Terms
from bpac.routing.bettors.candidates import Candidates
from bpac.routing.exploration.learned_rates import LearnedRates, Prospects, Schedule

# A score that joins may ask for this multiple of its estimated gain: estimates from few samples are rough.
MOST_OF_ESTIMATE = 2.0
# Rounds after which a score may retire, because no more of the traffic looks safe by it than by the one in force. If a
# little more does, it has some time to overtake: for 1 %, 1 % of ``PATIENCE``.
FEWEST_ROUNDS, PATIENCE = 4_000, 1_000_000

Number = TypeVar("Number", int, float)


class CandidateRates(Ledger):
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
        # None for a score that is not there, because it was not worth its share of α or has retired.
        self._scores: list[LearnedRates | None] = [LearnedRates(schedule, terms)]
        self._units = cast(LearnedRates, self._scores[0]).units
        # Public, because the route updates them itself, to save a call per round: rounds that are not counted by score
        # yet, and how many there may be before a score is due for a look.
        self.recent: list[Round] = []
        self.pause = schedule.every
        # Losses that are not booked by score yet: all scores of the draft, and the amount.
        self._lost: list[tuple[float, ...]] = []
        self._amounts: list[int] = []
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

    def join(self, gain: float | None) -> None:
        """Follow the next score from here on.

        Parameters
        ----------
        gain: how much more traffic it could accept, by an estimate that was made when it was fitted; none if there is
            no such score.
        """
        self._book_by_score()
        self._most_gains.append(0.0 if gain is None else MOST_OF_ESTIMATE * gain)
        self._scores.append(None if gain is None else LearnedRates(self._schedule, self._terms))
        self.look()

    def decided(self, decision: Round) -> None:
        """Count the traffic, and look at the rate now and then."""
        self.recent.append(decision)
        if len(self.recent) >= self.pause:
            self.look_if_due()

    def look_if_due(self) -> bool:
        """Look at the rate if a score is due for it; true if the rate may have changed."""
        self._book_by_score()
        due = any(len(score.recent) >= score.pause for score in self._followed())
        if due:  # rounds that do not carry every score may have put it off
            self.look()
        self._set_pause()
        return due

    def add(self, decision: Round, loss: float) -> None:
        """Book a loss by every score that the round carries."""
        self._lost.append(decision.uncertainties)
        self._amounts.append(self._units(loss, decision.propensity))

    def remove(self, decision: Round, loss: float) -> None:
        """Take a booked loss out again."""
        self._lost.append(decision.uncertainties)
        self._amounts.append(-self._units(loss, decision.propensity))

    def state(self) -> dict[str, Any]:
        """All that a later start needs, as JSON values."""
        self._book_by_score()
        self._set_pause()
        scores = [None if score is None else score.state() for score in self._scores]
        return {"rate": self._rate, "most_gains": self._most_gains[1:], "scores": scores}

    def load(self, state: dict[str, Any]) -> None:
        """Take over a state that ``state`` returned."""
        self._scores = [part and LearnedRates(self._schedule, self._terms) for part in state["scores"]]
        for score, part in zip(self._scores, state["scores"], strict=True):
            if score is not None:
                score.load(part)
        self._rate, self._most_gains = state["rate"], [math.inf, *state["most_gains"]]
        self._set_pause()

    def look(self) -> None:
        """Ask the schedule for the rate of the coming rounds, once for each score."""
        self._book_by_score()
        for score in self._followed():
            score.collect()
        bettor = self._bettor
        in_force = cast(LearnedRates, self._scores[bettor.active])  # a score that is not there is never in force
        accepted = in_force.accepted(bettor.threshold) / max(in_force.rounds, 1)
        if in_force.rounds >= FEWEST_ROUNDS:
            self._retire(in_force, accepted)
        rates = []
        for rated, most in zip(self._scores, self._most_gains, strict=True):
            if rated is None:
                continue
            # While nothing is accepted or nothing is known of a score, there is everything to gain.
            known = accepted and rated.rounds
            gain = (rated.looks_safe() / rated.rounds - accepted) / accepted if known else math.inf
            asked = self.prospects.asked(min(gain, most), rated.rounds, rated.audits)
            rates.append(self._schedule.wanted(*asked))
            rated.look_within(self._schedule.wanted_for(*asked))
        self._rate = max(rates)
        self._set_pause()

    def _retire(self, in_force: LearnedRates, accepted: float) -> None:
        """Let scores retire that accept no more than the one in force, and have nothing to gain on it.

        It costs nothing of the promise: each score bets for itself, and one that retires just stops.

        Parameters
        ----------
        in_force: the traffic and losses by the score in force.
        accepted: the share of the traffic that it accepts.
        """
        wealths, safe = self._bettor.wealths, in_force.looks_safe() / in_force.rounds
        for score, rated in enumerate(self._scores):
            if rated is None or rated.rounds < FEWEST_ROUNDS or not self._bettor.may_retire(score):
                continue
            accepts_less = rated.accepted(wealths[score].threshold) / rated.rounds <= accepted
            if accepts_less and rated.looks_safe() / rated.rounds <= safe * (1.0 + rated.rounds / PATIENCE):
                self._bettor.retire(score)
                self._scores[score] = None

    def _book_by_score(self) -> None:
        """Count the latest rounds and losses by every score that they carry."""
        recent = self.recent
        if recent:
            audited = [decision.least_propensity for decision in recent]
            carried = [decision.uncertainties for decision in recent]
            for score, traffic, audits in _by_score(self._scores, carried, audited):
                score.recent.extend(traffic)
                # One by one, as if each round had been counted at once.
                score.audits = reduce(plus, audits, score.audits)
            recent.clear()
        if self._lost:
            for score, lost, amounts in _by_score(self._scores, self._lost, self._amounts):
                score.book_all(lost, amounts)
            self._lost.clear()
            self._amounts.clear()

    def _set_pause(self) -> None:
        self.pause = min(score.pause - len(score.recent) for score in self._followed())

    def _followed(self) -> list[LearnedRates]:
        return [score for score in self._scores if score is not None]


def _by_score(
    scores: Sequence[LearnedRates | None], carried: Sequence[tuple[float, ...]], numbers: Sequence[Number]
) -> Iterator[tuple[LearnedRates, Sequence[float], Sequence[Number]]]:
    """Every score that is there, its values in the rounds that carry it, and the numbers of these rounds.

    Parameters
    ----------
    scores: the scores.
    carried: the scores that each round carries.
    numbers: a number for each round.
    """
    fewest = min(map(len, carried), default=0)
    for index, score in enumerate(scores):
        if score is None:
            continue
        if index < fewest:
            yield score, [values[index] for values in carried], numbers
        else:
            which = [index < len(values) for values in carried]
            yield score, [values[index] for values in compress(carried, which)], list(compress(numbers, which))
