"""The baselines of the paper."""

from dataclasses import dataclass
from typing import ClassVar

from bpac.arguments import closed_fraction, keep, of_kind, one_of, whole
from bpac.betting.bounds.certificate import ServedLoss
from bpac.betting.bounds.fixed_sample import RISK_BOUNDS
from bpac.betting.ledgers.levels import EvenLevels
from bpac.betting.ledgers.weighted_losses import SeenLosses, WeightedLosses
from bpac.betting.payoff import Terms
from bpac.errors import SettingsError
from bpac.routing.bettors import Bettor, Calibration, FixedThreshold, SumBettor, hoeffding_allowance, naive_allowance
from bpac.routing.exploration.schedules import Constant, Exploration, NoExploration
from bpac.routing.policies.policy import PlainPolicy


@dataclass(frozen=True, slots=True)
class Naive(PlainPolicy):
    """O-naive: losses that are not seen count as 0. A baseline without a promise."""

    grid: EvenLevels = EvenLevels()

    def __post_init__(self) -> None:
        of_kind(self.grid, "grid", (EvenLevels,))

    def start(self, terms: Terms, alpha: float, served: ServedLoss) -> Bettor:
        """The bettor of a new epoch."""
        return SumBettor(SeenLosses(terms, self.grid), naive_allowance(terms))


@dataclass(frozen=True, slots=True)
class Hoeffding(PlainPolicy):
    """IPS+Hoeffding: safe and very slow.

    Parameters
    ----------
    union: whether the bound also holds for all grid points at once.
    """

    union: bool = False
    grid: EvenLevels = EvenLevels()

    def __post_init__(self) -> None:
        of_kind(self.union, "union", (bool,))
        of_kind(self.grid, "grid", (EvenLevels,))

    def start(self, terms: Terms, alpha: float, served: ServedLoss) -> Bettor:
        """The bettor of a new epoch, which bets at level ``alpha``."""
        points = self.grid.count if self.union else 1
        return SumBettor(WeightedLosses(terms, self.grid), hoeffding_allowance(terms, alpha, points))


@dataclass(frozen=True, slots=True)
class Offline(PlainPolicy):
    """Offline PAC: a calibration set, then one fixed threshold.

    Parameters
    ----------
    size: rounds in the calibration set; labelled history counts.
    bound: ``clopper-pearson``, ``hoeffding-bentkus`` or ``betting``; none chooses by the losses.
    """

    commutes: ClassVar[bool] = False

    size: int = 500
    bound: str | None = None

    def __post_init__(self) -> None:
        whole(self.size, "size", 1)
        if self.bound is not None:
            one_of(self.bound, "bound", tuple(RISK_BOUNDS))

    @property
    def exploration(self) -> Exploration:
        """No exploration: after calibration no draft is audited."""
        return NoExploration()

    def start(self, terms: Terms, alpha: float, served: ServedLoss) -> Bettor:
        """The bettor of a new epoch, which bets at level ``alpha``."""
        return Calibration(terms, alpha, self.size, self.bound)


@dataclass(frozen=True, slots=True)
class Fixed(PlainPolicy):
    """A threshold set by hand: 0 always thinks, 1 never does.

    Parameters
    ----------
    threshold: drafts below it are kept.
    explores: the rate at which drafts below it are audited (default: 0, none).
    """

    in_order: ClassVar[bool] = False  # it learns nothing

    threshold: float = 0.0
    explores: float = 0.0

    def __post_init__(self) -> None:
        keep(self, threshold=closed_fraction(self.threshold, "threshold"))
        keep(self, explores=closed_fraction(self.explores, "explores"))
        if self.explores == 1.0:
            raise SettingsError("explores must be below 1: a policy that always asks the expert has threshold 0")

    @property
    def exploration(self) -> Exploration:
        """The default schedule."""
        return Constant(self.explores) if self.explores else NoExploration()

    def start(self, terms: Terms, alpha: float, served: ServedLoss) -> Bettor:
        """The bettor of a new epoch."""
        return FixedThreshold(self.threshold)
