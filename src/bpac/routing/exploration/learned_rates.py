"""Exploration that follows what there is to gain: rates learned from traffic and losses.

Any rate keeps the promise if it depends only on what is known before the round and never falls below the floor
(MATH section 3). So nothing here need be exact: scores are rounded more coarsely than those of the wealth, and the rate
is computed less often as a stream grows.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

import numpy as np

from bpac.betting.ledgers.ledger import Ledger, Round
from bpac.betting.ledgers.levels import RelativeLevels
from bpac.betting.payoff import Terms

# Weighted losses are whole multiples of this, so that their order of arrival leaves no trace.
UNIT = 1 << 20
MOST_UNITS = 1 << 40
# What came since the last look is kept, so looks must not become rare without end.
LONGEST_PAUSE = 4096


@dataclass(slots=True)
class Prospects:
    """What a schedule takes into account about the rounds to come.

    Parameters
    ----------
    before: rounds of earlier epochs, if they count for how many are expected.
    rounds: how many are expected to come, at least.
    audit_price: what an audit costs, as a multiple of what expert calls cost otherwise. What there is to gain is worth
        less in audits that cost more.
    """

    before: int = 0
    rounds: int = 0
    audit_price: float = 1.0

    def asked(self, gain: float, rounds: int, audits: float) -> tuple[float, int, float]:
        """What to ask a schedule with (``Schedule.wanted``).

        Parameters
        ----------
        gain, rounds, audits: as for ``Schedule.wanted``, in this epoch.
        """
        return gain / self.audit_price, max(self.before + rounds, self.rounds), audits


class Schedule(Protocol):
    """A schedule whose rate follows the gain."""

    @property
    def most(self) -> float:
        """The largest rate, and the first."""

    @property
    def floor(self) -> float:
        """The least rate."""

    @property
    def every(self) -> int:
        """Fewest rounds between two looks."""

    def wanted(self, gain: float, rounds: int, audits: float) -> float:
        """The rate to use until the next look.

        Parameters
        ----------
        gain: how much more traffic looks safe than is accepted, as a share of what is accepted.
        rounds: how many there were, and so are expected to come.
        audits: the rounds that everything was known of, if each counts by its least propensity.
        """

    def wanted_for(self, gain: float, rounds: int, audits: float) -> int:
        """How many rounds may have that rate before it must be looked at again.

        Parameters
        ----------
        gain, rounds, audits: as for ``wanted``.
        """


class LearnedRates(Ledger):
    """Traffic and weighted losses by score level, and the rate that the gain asked for at the last look."""

    LEVELS = RelativeLevels(bits=6)

    def __init__(self, schedule: Schedule, terms: Terms) -> None:
        self.schedule = schedule
        self._terms = terms
        # Public, because the route updates them itself, to save a call per round. Scores since the last look are
        # kept as they came, and so are losses: levels are found for many at once.
        self.recent: list[float] = []
        self.audits = 0.0
        self.pause = schedule.every
        self._lost: list[float] = []
        self._amounts: list[int] = []
        # Most losses are 0 or 1, and propensities take few values.
        self.units = lru_cache(maxsize=64)(self._compute_units)
        self._losses = np.zeros(self.LEVELS.top + 1, dtype=np.int64)
        self._traffic = np.zeros(self.LEVELS.top + 1, dtype=np.int64)
        self.rounds = 0
        self.prospects = Prospects()
        self._rate = schedule.most

    @property
    def steady_after(self) -> int:
        """From the start: only a look changes the rate."""
        return 0

    def rate(self, step: int) -> float:
        """Least probability of calling the expert in this step of the epoch."""
        return self._rate

    def decided(self, decision: Round) -> None:
        """Count the traffic, and look at the rate now and then."""
        self.recent.append(decision.uncertainty)
        self.audits += decision.least_propensity
        if len(self.recent) >= self.pause:
            self.look(decision.threshold)

    def add(self, decision: Round, loss: float) -> None:
        """Book a loss."""
        self.book(decision.uncertainty, decision.propensity, loss)

    def remove(self, decision: Round, loss: float) -> None:
        """Take a booked loss out again."""
        self.book(decision.uncertainty, decision.propensity, loss, -1)

    def book(self, uncertainty: float, propensity: float, loss: float, sign: int = 1) -> None:
        """Book a loss at a score, or take it out again."""
        self._lost.append(uncertainty)
        self._amounts.append(sign * self.units(loss, propensity))

    def book_all(self, uncertainties: Sequence[float], amounts: Sequence[int]) -> None:
        """Book amounts at scores, in the unit of ``units``."""
        self._lost.extend(uncertainties)
        self._amounts.extend(amounts)

    def state(self) -> dict[str, Any]:
        """All that a later start needs, as JSON values."""
        self._book_losses()
        codes = np.flatnonzero(self._losses | self._traffic)
        return {
            "rounds": self.rounds,
            "audits": self.audits,
            "rate": self._rate,
            "pause": self.pause,
            "recent": list(self.recent),
            "table": np.column_stack((codes, self._losses[codes], self._traffic[codes])).tolist(),
        }

    def load(self, state: dict[str, Any]) -> None:
        """Take over a state that ``state`` returned."""
        self.rounds, self.audits, self._rate = state["rounds"], state["audits"], state["rate"]
        self.pause, self.recent = state["pause"], list(state["recent"])
        for code, loss, traffic in state["table"]:
            self._losses[code], self._traffic[code] = loss, traffic

    def _compute_units(self, loss: float, propensity: float) -> int:
        return min(round(self._terms.weighted_loss(loss, propensity) * UNIT), MOST_UNITS)

    def _book_losses(self) -> None:
        """Book the losses since the last look at their levels."""
        if not self._lost:
            return
        np.add.at(self._losses, self.LEVELS.codes(self._lost), np.array(self._amounts, dtype=np.int64))
        self._lost.clear()
        self._amounts.clear()

    def look(self, threshold: float) -> None:
        """Ask the schedule for the rate of the coming rounds."""
        self.collect()
        top, accepted = self.looks_safe(), self.accepted(threshold)
        # While nothing is accepted, there is everything to gain.
        gain = (top - accepted) / accepted if accepted else math.inf
        asked = self.prospects.asked(gain, self.rounds, self.audits)
        self._rate = self.schedule.wanted(*asked)
        self.look_within(self.schedule.wanted_for(*asked))

    def look_within(self, rounds: int) -> None:
        """Look again after that many rounds at most, or as soon as the schedule allows."""
        self.pause = max(min(self.pause, rounds), self.schedule.every)

    def looks_safe(self) -> int:
        """How many rounds lie below the largest threshold that looks safe on the weighted losses so far."""
        most = int(self._terms.epsilon * self.rounds * UNIT)
        # All levels up to and including the one at an index lie below the threshold at the next.
        looks_safe = self._losses.cumsum().searchsorted(most, side="right")
        return int(self._traffic[:looks_safe].sum())

    def accepted(self, threshold: float) -> int:
        """How many rounds lie below a threshold."""
        return int(self._traffic[: self.LEVELS.code(threshold)].sum())

    def collect(self) -> None:
        """Count the rounds and losses since the last look at their levels, and set the pause to the next."""
        self._book_losses()
        self.rounds += len(self.recent)
        np.add.at(self._traffic, self.LEVELS.codes(self.recent), 1)
        self.recent.clear()
        self.pause = max(self.schedule.every, min(self.rounds // 4, LONGEST_PAUSE))
