"""Policies: values that say which betting game a route plays. Strings select ready compositions."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal, Protocol, cast

from bpac.betting.alarm import AlarmSettings
from bpac.betting.bets import AdaptiveBet, Bet, FixedBet
from bpac.betting.bounds import FRACTIONS, RISK_BOUNDS
from bpac.betting.certificate import ServedLoss
from bpac.betting.grid import GridWealth
from bpac.betting.levels import EvenLevels, Levels, ListedLevels, RelativeLevels
from bpac.betting.numbers import closed_fraction, keep, of_kind, one_of, open_fraction, positive, some, whole
from bpac.betting.payoff import Terms
from bpac.betting.portfolio import ConstantBoundWealth, PortfolioWealth
from bpac.betting.thresholds import FixedSequence, PriorThreshold, ThresholdRule
from bpac.betting.weighted_losses import SeenLosses, WeightedLosses
from bpac.errors import SettingsError
from bpac.routing.exploration import Constant, Exploration, NoExploration, TwoStage
from bpac.routing.games import (
    BudgetGame,
    Calibration,
    FixedThreshold,
    Game,
    InOrder,
    SplitScores,
    SumGame,
    hoeffding_allowance,
    naive_allowance,
)

Memory = Literal["alarmed", "revocable", "latched"]
MEMORIES = ("alarmed", "revocable", "latched")


class Policy(Protocol):
    """A policy, as a value: it starts the game of each epoch."""

    # The paper caps its bets by the exploration rate even while every query goes to the expert;
    # the others know that the propensity of every query was 1 then.
    certain_while_closed: ClassVar[bool]
    # Whether outcomes are sums: then a loss of 0 changes nothing, and one that comes after the round
    # was given up is still taken.
    commutes: ClassVar[bool]

    @property
    def exploration(self) -> Exploration:
        """The schedule used unless told otherwise."""

    @property
    def alarm(self) -> AlarmSettings | None:
        """The drift alarm that watches the game, if any."""

    @property
    def score_names(self) -> tuple[str, ...]:
        """The names of the scores, where there are several."""

    def start(self, terms: Terms, alpha: float, served: ServedLoss) -> Game:
        """Start a game at level ``alpha``."""


@dataclass(frozen=True, slots=True)
class _Plain:
    """What most policies have in common: no alarm, one score."""

    certain_while_closed: ClassVar[bool] = True
    commutes: ClassVar[bool] = True

    @property
    def exploration(self) -> Exploration:
        """The schedule used unless told otherwise."""
        return TwoStage()

    @property
    def alarm(self) -> AlarmSettings | None:
        """No alarm."""
        return None

    @property
    def score_names(self) -> tuple[str, ...]:
        """One score, without a name."""
        return ()


@dataclass(frozen=True, slots=True)
class Portfolio(_Plain):
    """The default (MATH section 3): gamblers at fixed fractions, thresholds at any score.

    Parameters
    ----------
    memory: what becomes of a certified threshold: ``latched`` keeps it, ``revocable`` lets it
        follow the wealth, ``alarmed`` keeps it until a drift alarm rings.
    assume: ``iid``, or ``any`` for arbitrary streams (section 4), which needs ``revocable``.
    fractions: stakes of the gamblers (θ).
    levels: where thresholds may lie; with ``any`` the prior is uniform on them.
    scores: names and shares of α, where several scores compete (section 8).
    drift: the alarm of ``alarmed``.
    """

    memory: Memory | None = None
    assume: Literal["iid", "any"] = "iid"
    fractions: tuple[float, ...] = FRACTIONS
    levels: Levels | None = None
    scores: Mapping[str, float] = field(default_factory=dict)
    drift: AlarmSettings = AlarmSettings()

    def __post_init__(self) -> None:
        one_of(self.assume, "assume", ("iid", "any"))
        arbitrary = self.assume == "any"
        if self.memory is None:
            keep(self, memory="revocable" if arbitrary else "alarmed")
        one_of(self.memory, "memory", MEMORIES)
        if arbitrary and self.memory != "revocable":
            raise SettingsError(
                f'memory "{self.memory}" holds for i.i.d. streams only: with assume = "any" take "revocable"'
            )
        # A prior is paid for by the number of thresholds, so there are few of them: 8 an octave.
        levels = self.levels or (RelativeLevels(4, 20) if arbitrary else RelativeLevels())
        of_kind(levels, "levels", (RelativeLevels, EvenLevels, ListedLevels))
        of_kind(self.drift, "drift", (AlarmSettings,))
        fractions = some(self.fractions, "fractions", "fraction", open_fraction)
        keep(self, fractions=fractions, levels=levels, scores=_shares(self.scores))

    @property
    def alarm(self) -> AlarmSettings | None:
        """The drift alarm, with memory ``alarmed``."""
        return self.drift if self.memory == "alarmed" else None

    @property
    def score_names(self) -> tuple[str, ...]:
        """The names of the scores, where there are several."""
        return tuple(self.scores)

    def start(self, terms: Terms, alpha: float, served: ServedLoss) -> Game:
        """Start a game at level ``alpha``."""
        if not self.scores:
            return self._wealth(terms, alpha, None)
        return SplitScores([self._wealth(terms, alpha * share, i) for i, share in enumerate(self.scores.values())])

    def _wealth(self, terms: Terms, alpha: float, score: int | None) -> PortfolioWealth:
        levels = cast(Levels, self.levels)  # set in __post_init__
        latched = self.memory != "revocable"
        if self.assume == "iid":
            return PortfolioWealth(terms, -math.log(alpha), self.fractions, levels, latched=latched, score=score)
        bar = math.log(levels.top / alpha)
        return ConstantBoundWealth(terms, bar, self.fractions, levels, latched=latched, score=score)


def _shares(scores: object) -> dict[str, float]:
    """Names and shares of α, from a mapping or from pairs, as JSON has them."""
    try:
        shares = {name: positive(share, f"share of {name}") for name, share in dict(scores).items()}  # type: ignore[call-overload]
    except (TypeError, ValueError) as error:
        if isinstance(error, SettingsError):
            raise
        raise SettingsError(f"scores must map names to shares of α, got {scores!r}") from error
    if len(shares) == 1:
        raise SettingsError("one score needs no shares: leave scores out")
    if shares and abs(sum(shares.values()) - 1.0) > 1e-9:
        raise SettingsError(f"the shares of α must sum to 1, got {sum(shares.values())}")
    return shares


@dataclass(frozen=True, slots=True)
class Paper(_Plain):
    """The paper's Algorithm 1 (MATH section 2), and its version for non-stationary streams.

    Parameters
    ----------
    bet: how much is staked.
    rule: how the threshold follows from the wealth.
    grid: the thresholds.
    """

    certain_while_closed: ClassVar[bool] = False
    commutes: ClassVar[bool] = False

    bet: Bet = AdaptiveBet()
    rule: ThresholdRule = FixedSequence()
    grid: EvenLevels = EvenLevels()

    def __post_init__(self) -> None:
        of_kind(self.bet, "bet", (AdaptiveBet, FixedBet))
        of_kind(self.rule, "rule", (FixedSequence, PriorThreshold))
        of_kind(self.grid, "grid", (EvenLevels,))

    def start(self, terms: Terms, alpha: float, served: ServedLoss) -> Game:
        """Start a game at level ``alpha``."""
        return InOrder(GridWealth(terms, alpha, self.bet, self.rule, self.grid))


@dataclass(frozen=True, slots=True)
class Budget(_Plain):
    """Keeps the loss really served below ε on any stream (MATH section 7).

    Parameters
    ----------
    first: rounds before the first draft may be kept.
    """

    first: int = 100

    def __post_init__(self) -> None:
        whole(self.first, "first", 1)

    @property
    def exploration(self) -> Exploration:
        """The schedule used unless told otherwise."""
        return Constant(0.2)

    def start(self, terms: Terms, alpha: float, served: ServedLoss) -> Game:
        """Start a game at level ``alpha``."""
        return BudgetGame(WeightedLosses(terms, RelativeLevels()), terms, served, self.first)


@dataclass(frozen=True, slots=True)
class Naive(_Plain):
    """O-naive: losses that are not seen count as 0. A baseline without a promise."""

    grid: EvenLevels = EvenLevels()

    def __post_init__(self) -> None:
        of_kind(self.grid, "grid", (EvenLevels,))

    def start(self, terms: Terms, alpha: float, served: ServedLoss) -> Game:
        """Start a game."""
        return SumGame(SeenLosses(terms, self.grid), naive_allowance(terms))


@dataclass(frozen=True, slots=True)
class Hoeffding(_Plain):
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

    def start(self, terms: Terms, alpha: float, served: ServedLoss) -> Game:
        """Start a game at level ``alpha``."""
        points = self.grid.count if self.union else 1
        return SumGame(WeightedLosses(terms, self.grid), hoeffding_allowance(terms, alpha, points))


@dataclass(frozen=True, slots=True)
class Offline(_Plain):
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
        """None: after calibration nothing is looked at."""
        return NoExploration()

    def start(self, terms: Terms, alpha: float, served: ServedLoss) -> Game:
        """Start a game at level ``alpha``."""
        return Calibration(terms, alpha, self.size, self.bound)


@dataclass(frozen=True, slots=True)
class Fixed(_Plain):
    """A threshold set by hand: 0 always thinks, 1 never does.

    Parameters
    ----------
    threshold: drafts below it are kept.
    explores: the rate at which drafts below it are audited all the same; 0 for none.
    """

    threshold: float = 0.0
    explores: float = 0.0

    def __post_init__(self) -> None:
        keep(self, threshold=closed_fraction(self.threshold, "threshold"))
        keep(self, explores=closed_fraction(self.explores, "explores"))
        if self.explores == 1.0:
            raise SettingsError("explores must be below 1: a policy that always asks the expert has threshold 0")

    @property
    def exploration(self) -> Exploration:
        """The schedule used unless told otherwise."""
        return Constant(self.explores) if self.explores else NoExploration()

    def start(self, terms: Terms, alpha: float, served: ServedLoss) -> Game:
        """Start a game."""
        return FixedThreshold(self.threshold)


# The oracle's threshold depends on the data: whoever has a table computes it and fills it in.
ORACLE = Fixed(explores=0.05)

POLICIES: dict[str, Policy] = {
    "portfolio": Portfolio(),
    "budget": Budget(),
    "paper": Paper(),
    "paper-prior": Paper(rule=PriorThreshold()),
    "naive": Naive(),
    "hoeffding": Hoeffding(),
    "offline": Offline(),
    "always": Fixed(0.0),
    "never": Fixed(1.0),
    "oracle": ORACLE,
}


def named_policy(name: str, memory: str | None = None, assume: str | None = None) -> Policy:
    """The ready composition of that name.

    >>> named_policy("portfolio", memory="latched").memory
    'latched'
    """
    one_of(name, "policy", tuple(POLICIES))
    policy = POLICIES[name]
    if memory is None and assume is None:
        return policy
    if not isinstance(policy, Portfolio):
        raise SettingsError(f'memory and assume belong to policy "portfolio", not to "{name}": leave them out')
    one_of(assume or "iid", "assume", ("iid", "any"))
    one_of(memory or "alarmed", "memory", MEMORIES)
    # Both were checked a line ago.
    return replace(policy, memory=memory, assume=assume or "iid", levels=None)  # type: ignore[arg-type]
