"""The guarantee itself, by seeded simulation, and wrong methods that the same test catches."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import pytest

from bpac.betting.bounds.fixed_sample import binomial_cdf
from bpac.betting.ledgers.ledger import Round
from bpac.betting.wealth.portfolio import PortfolioWealth
from bpac.replay.simulation.delays import Delay
from bpac.replay.simulation.faults import Faults
from bpac.replay.simulation.laws import Law, LevelLaw, PowerLaw
from bpac.replay.validation import Promise, StreamResult, Validation, upper_95
from bpac.routing.coins import Coins
from bpac.routing.journal.entries import Entry
from bpac.routing.policies import named_policy
from bpac.routing.router import Router

pytestmark = pytest.mark.promise

STREAMS, STEPS, EPSILON, ALPHA = 1000, 500, 0.15, 0.1
RISING: Law = PowerLaw(most=0.6, power=1.0)
LEVELS: Law = LevelLaw()


@dataclass(frozen=True)
class Start:
    """Fresh routers of a policy, perhaps with a bettor that does something wrong."""

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


def simulated(start: Start, delay: str = "none", crash_every: int = 0, law: Law = RISING,
              promise: Promise = "threshold") -> list[StreamResult]:  # fmt: skip
    """How each of the streams went."""
    validation = Validation(start, law, promise, STEPS, Delay.parse(delay), faults=Faults(crash_every=crash_every))
    return validation.run(STREAMS, seed=1, workers=1)


def violations(start: Start, delay: str = "none", law: Law = RISING) -> int:
    """How many of the streams have an unsafe threshold in force."""
    return sum(verdict.broken for verdict in simulated(start, delay, law=law))


def holds(count: int) -> bool:
    """Whether the exact 95 % bound is at most α and what the sample size explains."""
    return upper_95(count, STREAMS) <= upper_95(most_explained(STREAMS, ALPHA), STREAMS)


POLICIES: list[tuple[str, str | None, Promise]] = [
    ("paper", None, "threshold"),
    ("portfolio", "latched", "threshold"),
    ("portfolio", "revocable", "threshold"),
    ("budget", None, "served"),
    ("portfolio", "alarmed", "certificate"),  # and its thresholds: one simulation shows both
]
FEEDBACK = [("none", 0), ("losses:20", 0), ("lost:0.2", 0), ("losses:20", 300)]


@pytest.mark.parametrize(("policy", "memory", "promise"), POLICIES)
@pytest.mark.parametrize(("delay", "crash_every"), FEEDBACK)
def test_promise_holds(policy: str, memory: str | None, promise: Promise, delay: str, crash_every: int) -> None:
    """The promise fails in at most a share α of streams, whatever becomes of the feedback."""
    verdicts = simulated(Start(policy, memory), delay, crash_every, promise=promise)
    assert holds(sum(verdict.broken for verdict in verdicts))
    if policy != "budget":  # whose thresholds promise nothing
        assert holds(sum(verdict.unsafe for verdict in verdicts))


@pytest.mark.parametrize(("policy", "memory"), [("paper", None), ("portfolio", "latched")])
def test_promise_holds_with_ties(policy: str, memory: str | None) -> None:
    """It holds on a score with three levels, where every draft lies on a threshold."""
    assert holds(violations(Start(policy, memory, epsilon=0.1), law=LEVELS))


def test_the_simulation_has_power() -> None:
    """Thresholds do get close to the edge: the promise is used, not merely kept."""
    assert violations(Start("portfolio", "latched")) >= 0.04 * STREAMS


class OnArrival(PortfolioWealth):
    """Wrong: wins are paid at the decision and losses booked when they arrive."""

    __slots__ = ()

    def charge(self, decision: Round) -> None:
        """Book nothing."""

    def refund(self, decision: Round, loss: float) -> None:
        """Book the loss now."""
        self.resolve(decision, loss)


class Dropping(PortfolioWealth):
    """Wrong: a round whose outcome is lost is treated as if it had never been."""

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


def test_updating_on_arrival_breaks_it() -> None:
    """Control: wealth updated as feedback arrives, losses taking longer, fails the test."""
    assert not holds(violations(Start("portfolio", "latched", wrong=OnArrival), "losses:20"))


def test_dropping_lost_rounds_breaks_it() -> None:
    """Control: dropping rounds whose outcome is lost fails the test."""
    assert not holds(violations(Start("portfolio", "latched", wrong=Dropping), "lost:0.2"))


def test_accepting_ties_breaks_it() -> None:
    """Control: ``≤`` in place of ``<`` fails the test on a score with three levels."""
    assert not holds(violations(Start("portfolio", "latched", epsilon=0.1, wrong=TiesAccepted), law=LEVELS))


def test_naive_breaks_it() -> None:
    """Control: counting unseen losses as 0 fails the test."""
    assert not holds(violations(Start("naive")))
