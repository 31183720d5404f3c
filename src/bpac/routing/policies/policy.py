"""What every policy has."""

from dataclasses import dataclass
from typing import ClassVar, Protocol

from bpac.betting.bounds.certificate import ServedLoss
from bpac.betting.drift.alarm import AlarmSettings
from bpac.betting.payoff import Terms
from bpac.routing.bettors import Bettor
from bpac.routing.exploration.schedules import Exploration, TwoStage
from bpac.routing.learning.learned_score import LearnedScore


class Policy(Protocol):
    """A policy, as a value: it makes the bettor of each epoch."""

    # The paper caps its bets by the exploration rate even while every query goes to the expert;
    # the others use that the propensity of every query is 1 then.
    certain_while_closed: ClassVar[bool]
    # Whether outcomes are sums: then a loss of 0 changes nothing, and one that comes after the round
    # was given up is still taken.
    commutes: ClassVar[bool]
    # Whether the bettor must see rounds in the order in which their queries arrived. What only needs the
    # coin to be random, or learns nothing, need not wait for earlier queries.
    in_order: ClassVar[bool]
    # Whether an open ticket is charged where the rounds held up behind it are worth more.
    passes_over: ClassVar[bool]

    @property
    def exploration(self) -> Exploration:
        """The default schedule."""

    @property
    def alarm(self) -> AlarmSettings | None:
        """The drift alarm that watches the threshold, if any."""

    @property
    def score_names(self) -> tuple[str, ...]:
        """The names of the scores, where there are several."""

    @property
    def learned(self) -> LearnedScore | None:
        """The settings of scores that are learned, if any."""

    def start(self, terms: Terms, alpha: float, served: ServedLoss) -> Bettor:
        """The bettor of a new epoch, which bets at level ``alpha``."""


@dataclass(frozen=True, slots=True)
class PlainPolicy:
    """What most policies have in common: no alarm, one score."""

    certain_while_closed: ClassVar[bool] = True
    commutes: ClassVar[bool] = True
    in_order: ClassVar[bool] = True
    passes_over: ClassVar[bool] = False

    @property
    def exploration(self) -> Exploration:
        """The default schedule."""
        return TwoStage()

    @property
    def alarm(self) -> AlarmSettings | None:
        """No alarm."""
        return None

    @property
    def score_names(self) -> tuple[str, ...]:
        """One score, without a name."""
        return ()

    @property
    def learned(self) -> LearnedScore | None:
        """No score is learned."""
        return None
