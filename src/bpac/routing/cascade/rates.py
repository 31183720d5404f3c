"""The exploration rate of a cascade: audits are made while what they could save is worth their price."""

from typing import Protocol, cast, runtime_checkable

from bpac.betting.payoff import Terms
from bpac.routing.cascade.bettor import CascadeBettor
from bpac.routing.exploration.learned_rates import Prospects, Schedule
from bpac.routing.exploration.schedules import Exploration, Rates


@runtime_checkable
class FollowsGain(Protocol):
    """A schedule whose rate follows the gain."""

    def wanted(self, gain: float, rounds: int, audits: float) -> float:
        """The rate to use."""


class CascadeRates:
    """The rates of one epoch.

    A schedule that follows the gain is asked with the gain in money that the bettor estimates. Other schedules are used
    as they are.

    Parameters
    ----------
    schedule: the schedule of the router.
    terms: the terms of the bets.
    bettor: the bettor of the epoch.
    """

    # The gain may change with every round.
    steady_after = 1 << 62

    def __init__(self, schedule: Exploration, terms: Terms, bettor: CascadeBettor) -> None:
        self._schedule: Schedule | None = schedule if isinstance(schedule, FollowsGain) else None  # type: ignore[assignment]
        self._rates = None if self._schedule is not None else schedule.start(terms)
        self._bettor = bettor
        self.prospects = Prospects()

    def rate(self, step: int) -> float:
        """Least probability of calling the reference in this step of the epoch."""
        if self._schedule is None:
            return cast(Rates, self._rates).rate(step)
        bettor = self._bettor
        return self._schedule.wanted(*self.prospects.asked(bettor.gain, bettor.rounds, bettor.audits))
