"""The promises, checked by seeded simulation, and wrong methods that the same simulation catches."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, tee

import pytest

from bpac.betting.bounds.fixed_sample import binomial_cdf
from bpac.betting.ledgers.ledger import Round
from bpac.betting.wealth.portfolio import PortfolioWealth
from bpac.replay.simulation.delays import Delay
from bpac.replay.simulation.faults import Faults
from bpac.replay.simulation.laws import Law, LevelLaw, PowerLaw
from bpac.replay.validation import Promise, Validation
from bpac.routing.coins import Coins
from bpac.routing.journal.entries import Entry
from bpac.routing.policies import named_policy
from bpac.routing.router import Router

pytestmark = pytest.mark.promise

STREAMS, STEPS, EPSILON, ALPHA = 100, 500, 0.15, 0.1
RISING: Law = PowerLaw(most=0.6, power=1.0)
LEVELS: Law = LevelLaw()


@dataclass(frozen=True)
class Routers:
    """Makes fresh routers of a policy, if asked for with a bettor that does something wrong."""

    policy: str
    memory: str | None = None
    epsilon: float = EPSILON
    wrong: type[PortfolioWealth] | None = None

    def __call__(self, coins: Coins, journal: Callable[[Entry], object] | None = None) -> Router:
        """A fresh router."""
        router = Router(self.epsilon, ALPHA, named_policy(self.policy, self.memory), coins=coins, journal=journal)
        if self.wrong is not None:
            router._route.bettor.__class__ = self.wrong
        return router


@lru_cache
def most_explained(streams: int, chance: float) -> int:
    """The most violations that a true rate of ``chance`` explains in 99 of 100 such experiments."""
    count = 0
    while binomial_cdf(count, streams, chance) < 0.99:
        count += 1
    return count


def more_than(count: int, broken: Iterable[bool]) -> bool:
    """Whether more than that number of streams break their promise; those that follow are not played."""
    return any(so_far > count for so_far in accumulate(broken))


def explained(broken: Iterable[bool], streams: int, chance: float) -> bool:
    """Whether a true rate of ``chance`` explains the violations; streams that cannot change the verdict are not played.

    Parameters
    ----------
    broken: whether each stream breaks its promise, in order.
    streams: how many there are.
    """
    most, found = most_explained(streams, chance), 0
    for left, one in zip(range(streams - 1, -1, -1), broken, strict=False):
        found += one
        if found > most or found + left <= most:
            break
    return found <= most


MOST = most_explained(STREAMS, ALPHA)
# The promises that each policy makes. One simulation checks all of them.
POLICIES: list[tuple[str, str | None, tuple[Promise, ...]]] = [
    ("paper", None, ("threshold",)),
    ("portfolio", "latched", ("threshold",)),
    ("portfolio", "revocable", ("threshold",)),
    ("portfolio", "alarmed", ("threshold", "certificate")),
    ("budget", None, ("served",)),
]
FEEDBACK = [("none", 0), ("lost:0.2", 0), ("losses:20", 300)]


@pytest.mark.parametrize(
    ("policy", "memory", "promises"), POLICIES, ids=["-".join(filter(None, policy[:2])) for policy in POLICIES]
)
@pytest.mark.parametrize(("delay", "crash_every"), FEEDBACK)
def test_promises_hold_whatever_happens_to_the_feedback(
    policy: str, memory: str | None, promises: tuple[Promise, ...], delay: str, crash_every: int
) -> None:
    """Each promise fails in at most a share α of streams, with feedback at once, late, lost, and with crashes."""
    faults = Faults(crash_every=crash_every)
    certificate = "certificate" in promises
    validation = Validation(
        Routers(policy, memory), RISING, STEPS, Delay.parse(delay), faults=faults, certificate=certificate
    )
    results = tee((validation.stream(seed).broken for seed in range(1, 1 + STREAMS)), len(promises))
    for promise, broken in zip(promises, results, strict=True):
        assert explained((promise in each for each in broken), STREAMS, ALPHA), promise


def unsafe_in_more_than(
    count: int, routers: Routers, delay: str = "none", law: Law = RISING, streams: int = STREAMS
) -> bool:
    """Whether an unsafe threshold is in force in more than that number of streams."""
    validation = Validation(routers, law, STEPS, Delay.parse(delay))
    return more_than(count, ("threshold" in validation.stream(seed).broken for seed in range(1, 1 + streams)))


@pytest.mark.parametrize(("policy", "memory"), [("paper", None), ("portfolio", "latched")])
def test_the_promise_holds_with_ties(policy: str, memory: str | None) -> None:
    """It holds on a score with three levels, where every draft lies on a threshold."""
    assert not unsafe_in_more_than(MOST, Routers(policy, memory, epsilon=0.1), law=LEVELS)


def test_thresholds_come_close_to_the_limit() -> None:
    """The simulation has power: without delays an unsafe threshold is in force in at least 4 % of streams."""
    streams = 160
    assert unsafe_in_more_than(streams // 25 - 1, Routers("portfolio", "latched"), streams=streams)


class OnArrival(PortfolioWealth):
    """Wrong: wins are paid at the decision and losses booked when they arrive."""

    __slots__ = ()

    def charge(self, decision: Round) -> None:
        """Book nothing."""

    def refund(self, decision: Round, loss: float) -> None:
        """Book the loss now."""
        self.resolve(decision, loss)


class Dropping(PortfolioWealth):
    """Wrong: a round whose outcome is lost is treated as if it did not exist."""

    __slots__ = ()

    def forfeit(self, decision: Round) -> None:
        """Take out the charge and the round's win."""
        wins = self._wins(self._bound(decision.least_propensity))
        self._collect()
        self._common = [common - win for common, win in zip(self._common, wins, strict=True)]
        self.remove(decision, 1.0)


class TiesAccepted(PortfolioWealth):
    """Wrong: a draft at the threshold is accepted, although its losses count for higher thresholds only."""

    __slots__ = ()

    @property
    def threshold(self) -> float:
        """Just above the certified threshold: below it is what is not above the threshold."""
        return math.nextafter(self._levels.value(self._table.limit), 2.0) if self._table.limit else 0.0

    @threshold.setter
    def threshold(self, value: float) -> None:
        """Derived, not set."""


def test_updating_on_arrival_breaks_the_promise() -> None:
    """Control: wealth is updated when feedback arrives, and losses take longer."""
    assert unsafe_in_more_than(MOST, Routers("portfolio", "latched", wrong=OnArrival), "losses:20")


def test_dropping_lost_rounds_breaks_the_promise() -> None:
    """Control: rounds whose outcome is lost are dropped."""
    assert unsafe_in_more_than(MOST, Routers("portfolio", "latched", wrong=Dropping), "lost:0.2")


def test_accepting_ties_breaks_the_promise() -> None:
    """Control: ``≤`` in place of ``<``, on a score with three levels."""
    assert unsafe_in_more_than(MOST, Routers("portfolio", "latched", epsilon=0.1, wrong=TiesAccepted), law=LEVELS)


def test_naive_breaks_the_promise() -> None:
    """Control: losses that were not seen count as 0."""
    assert unsafe_in_more_than(MOST, Routers("naive"))
