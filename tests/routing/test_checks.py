from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from bpac.betting.bounds.certificate import ServedLoss
from bpac.betting.ledgers.ledger import Round
from bpac.betting.ledgers.levels import EvenLevels, ListedLevels
from bpac.betting.payoff import Terms
from bpac.betting.wealth.bets import FixedBet
from bpac.betting.wealth.portfolio import PortfolioWealth
from bpac.betting.wealth.thresholds import PriorThreshold
from bpac.errors import CheckFailed
from bpac.routing import settings
from bpac.routing.bettors import Bettor, FixedThreshold
from bpac.routing.checks import CHECKS, check_bad_input, check_order, check_rebuild, check_refund
from bpac.routing.exploration.gain_schedules import GainDriven
from bpac.routing.exploration.schedules import Constant, Exploration
from bpac.routing.policies import POLICIES, Budget, Fixed, Hoeffding, Naive, Offline, Paper, Policy, Portfolio


@dataclass(frozen=True, slots=True)
class Eager(Portfolio):
    """A portfolio that explores where there is something to gain."""

    @property
    def exploration(self) -> Exploration:
        """The default schedule."""
        return GainDriven(every=16)


VARIANTS: dict[str, Policy] = {
    **POLICIES,
    "latched": Portfolio(memory="latched"),
    "revocable": Portfolio(memory="revocable"),
    "any stream": Portfolio(assume="any", levels=ListedLevels((0.2, 0.5, 0.8))),
    "one fraction": Portfolio(fractions=(0.5,), levels=EvenLevels(101)),
    "dithered": Portfolio(dither=0.1),
    "plain stakes at the floor": Portfolio(floor_fractions=()),
    "two dithered scores": Portfolio(scores={"entropy": 0.5, "margin": 0.5}, dither=0.02),
    "two scores": Portfolio(scores={"entropy": 0.5, "margin": 0.5}),
    "three scores, revocable": Portfolio(memory="revocable", scores={"a": 0.2, "b": 0.3, "c": 0.5}),
    "two scores, any stream": Portfolio(assume="any", scores={"a": 0.5, "b": 0.5}),
    "fixed bet": Paper(bet=FixedBet(0.05), grid=EvenLevels(101)),
    "few points and a prior": Paper(rule=PriorThreshold((3.0, 2.0, 1.0)), grid=EvenLevels(3)),
    "early budget": Budget(first=1),
    "coarse naive": Naive(EvenLevels(11)),
    "hoeffding over the grid": Hoeffding(union=True),
    "small calibration set": Offline(size=50, bound="betting"),
    "half": Fixed(0.5, explores=0.1),
}


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", VARIANTS)
def test_every_policy_passes_every_check(name: str, check: Callable[[Policy], None]) -> None:
    """Rebuilding, order of arrival, refunds and bad input: one set of checks for all policies."""
    check(VARIANTS[name])


@pytest.fixture
def more_policies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let routers take the policies of this file, and their journals name them."""
    monkeypatch.setattr(settings, "KINDS", settings.KINDS | {"Eager": Eager, "Broken": Broken})


@pytest.mark.usefixtures("more_policies")
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_exploration_that_learns_passes_the_checks(check: Callable[[Policy], None]) -> None:
    """Rates that follow the rounds are rebuilt with them."""
    check(Eager())


class Forgetful(PortfolioWealth):
    """Wealth that takes out less than it booked."""

    def remove(self, decision: Round, loss: float) -> None:
        """Take out a part of the charge only."""
        super().remove(decision, loss / 2.0)


class Amnesiac(FixedThreshold):
    """A bettor that counts rounds and forgets its count when it is loaded."""

    rounds = 0

    def decided(self, decision: Round) -> None:
        """Count."""
        self.rounds += 1

    def state(self) -> dict[str, Any]:
        """The threshold and the count."""
        return {"threshold": self.threshold, "rounds": self.rounds}


class LastWord(FixedThreshold):
    """A threshold that is the last loss seen."""

    def refund(self, decision: Round, loss: float) -> None:
        """Use the latest loss."""
        self.threshold = loss


@dataclass(frozen=True, slots=True)
class Broken:
    """A policy with a bettor of the test's choice."""

    bettor: ClassVar[Callable[[], Bettor]]
    certain_while_closed: ClassVar[bool] = True
    commutes: ClassVar[bool] = True
    in_order: ClassVar[bool] = True
    passes_over: ClassVar[bool] = False
    exploration: Exploration = Constant(0.2)
    alarm: None = None
    score_names: tuple[str, ...] = ()
    learned: None = None

    def start(self, terms: Terms, alpha: float, served: ServedLoss) -> Bettor:
        """Start the broken bettor."""
        return type(self).bettor()


def forgetful() -> Bettor:
    """A wealth whose refunds do not undo their charges."""
    return Forgetful(Terms(0.15, 0.2), 1.0, (0.5,), EvenLevels(11), latched=False)


@pytest.mark.usefixtures("more_policies")
@pytest.mark.parametrize(
    ("check", "bettor", "claim"),
    [
        (check_rebuild, lambda: Amnesiac(0.5), "a snapshot is as good as the journal"),
        (check_order, lambda: LastWord(0.5), "the order of arrival leaves no trace"),
        (check_refund, forgetful, "a refund undoes its charge"),
    ],
)
def test_a_broken_policy_fails_its_check(
    check: Callable[[Policy], None],
    bettor: Callable[[], Bettor],
    claim: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each check fails on a bettor made to break it, and says which claim did not hold."""
    monkeypatch.setattr(Broken, "bettor", staticmethod(bettor), raising=False)
    with pytest.raises(CheckFailed, match=f"check failed: {claim}"):
        check(Broken())


def test_a_router_that_accepts_bad_scores_fails_the_check(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The check of bad input fails where a router accepts what is not a number in [0, 1]."""
    monkeypatch.setattr("bpac.routing.router.proposals.fraction", lambda value, name: 0.5)
    with pytest.raises(CheckFailed, match="is refused"):
        check_bad_input(POLICIES["portfolio"])
