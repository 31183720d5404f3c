"""The default policy."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, cast

from bpac.arguments import closed_fraction, keep, of_kind, one_of, open_fraction, positive, some
from bpac.betting.bounds.certificate import ServedLoss
from bpac.betting.bounds.fixed_sample import FRACTIONS
from bpac.betting.drift.alarm import AlarmSettings
from bpac.betting.ledgers.levels import EvenLevels, Levels, ListedLevels, RelativeLevels
from bpac.betting.payoff import Terms
from bpac.betting.wealth.portfolio import ConstantBoundWealth, PortfolioWealth
from bpac.errors import SettingsError
from bpac.routing.bettors import Bettor, Candidates, SplitScores
from bpac.routing.exploration.learned_rates import WhileItPays
from bpac.routing.exploration.schedules import Exploration, TwoStage
from bpac.routing.learning.learned_score import LearnedScore
from bpac.routing.policies.policy import PlainPolicy

Memory = Literal["alarmed", "revocable", "latched"]
MEMORIES = ("alarmed", "revocable", "latched")
# In rounds at the exploration floor audits are rare, so that only thresholds well below ε can be certified in time, and
# the best stake at a risk R is the fraction 1 − R/ε of the payoff bound: there, larger stakes win more. The two numbers
# were the best on the built-in tables (multiples from 1.5 to 6, limits from 0.7 to 0.98; all of them beat 1).
BOLDNESS = 4.0
LARGEST_FRACTION = 0.9
FLOOR_FRACTIONS = tuple(min(BOLDNESS * stake, LARGEST_FRACTION) for stake in FRACTIONS)


@dataclass(frozen=True, slots=True)
class Portfolio(PlainPolicy):
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
    floor_fractions: stakes of the gamblers in rounds whose least propensity is the exploration floor (section 16);
        empty for the same as in other rounds (default: four times as large, at most 0.9, with memory ``alarmed`` and
        the default fractions; else empty).
    dither: by how much scores are lowered at random at most, relative to themselves (``routing/dithering.py``); for
        scores with few values (default: 0, not at all).
    learn: scores that are learned on the way (section 14); none are by default.
    """

    passes_over: ClassVar[bool] = True
    # What a journal says that was written before these settings existed.
    unwritten: ClassVar[Mapping[str, Any]] = {"floor_fractions": (), "dither": 0.0, "learn": None}

    memory: Memory | None = None
    assume: Literal["iid", "any"] = "iid"
    fractions: tuple[float, ...] = FRACTIONS
    levels: Levels | None = None
    scores: Mapping[str, float] = field(default_factory=dict)
    drift: AlarmSettings = AlarmSettings()
    floor_fractions: tuple[float, ...] | None = None
    dither: float = 0.0
    learn: LearnedScore | None = None

    def __post_init__(self) -> None:
        one_of(self.assume, "assume", ("iid", "any"))
        arbitrary = self.assume == "any"
        if self.memory is None:
            keep(self, memory="revocable" if arbitrary else "alarmed")
        one_of(self.memory, "memory", MEMORIES)
        if arbitrary and self.memory != "revocable":
            raise SettingsError(
                f'memory "{self.memory}" holds for i.i.d. streams only: with assume = "any" use "revocable"'
            )
        # A prior is paid for by the number of thresholds, so there are few of them: 8 per octave.
        levels = self.levels or (RelativeLevels(4, 20) if arbitrary else RelativeLevels())
        of_kind(levels, "levels", (RelativeLevels, EvenLevels, ListedLevels))
        of_kind(self.drift, "drift", (AlarmSettings,))
        if self.learn is not None:
            of_kind(self.learn, "learn", (LearnedScore,))
            if self.scores or arbitrary:
                raise SettingsError('learn goes with one score and assume = "iid": leave out one of them')
        fractions = some(self.fractions, "fractions", "fraction", open_fraction)
        keep(self, fractions=fractions, levels=levels, scores=_shares(self.scores))
        stakes = stakes_at_floor(self.floor_fractions, self.fractions, self.memory)
        if stakes and arbitrary:
            # The promise is then about a plain average, in which every round has the same stake.
            raise SettingsError('floor_fractions must be empty with assume = "any"')
        keep(self, floor_fractions=stakes, dither=closed_fraction(self.dither, "dither"))
        if self.dither == 1.0:
            raise SettingsError("dither must be below 1: it is the largest share by which a score is lowered")

    @property
    def exploration(self) -> Exploration:
        """The default schedule: ``WhileItPays`` with memory ``alarmed``, the paper's with the others."""
        return WhileItPays() if self.memory == "alarmed" else TwoStage()

    @property
    def alarm(self) -> AlarmSettings | None:
        """The drift alarm, with memory ``alarmed``."""
        return self.drift if self.memory == "alarmed" else None

    @property
    def score_names(self) -> tuple[str, ...]:
        """The names of the scores, where there are several."""
        return tuple(self.scores)

    @property
    def learned(self) -> LearnedScore | None:
        """The settings of scores that are learned, if any."""
        return self.learn

    def start(self, terms: Terms, alpha: float, served: ServedLoss) -> Bettor:
        """The bettor of a new epoch, which bets at level ``alpha``."""
        if self.learn is not None:
            learn = self.learn
            return Candidates(lambda score: self._wealth(terms, alpha * learn.share(score), score), learn.returned)
        if not self.scores:
            return self._wealth(terms, alpha, None)
        return SplitScores([self._wealth(terms, alpha * share, i) for i, share in enumerate(self.scores.values())])

    def _wealth(self, terms: Terms, alpha: float, score: int | None) -> PortfolioWealth:
        levels = cast(Levels, self.levels)  # set in __post_init__
        latched = self.memory != "revocable"
        if self.assume == "iid":
            return PortfolioWealth(
                terms,
                -math.log(alpha),
                self.fractions,
                levels,
                latched=latched,
                score=score,
                floor_fractions=cast(tuple[float, ...], self.floor_fractions),  # set in __post_init__
            )
        bar = math.log(levels.top / alpha)
        return ConstantBoundWealth(terms, bar, self.fractions, levels, latched=latched, score=score)


def stakes_at_floor(
    floor_fractions: tuple[float, ...] | None, fractions: tuple[float, ...], memory: str | None
) -> tuple[float, ...]:
    """Stakes of the gamblers in rounds at the exploration floor; empty for the same as in other rounds.

    Parameters
    ----------
    floor_fractions: what was asked for; none for the default.
    fractions, memory: settings of the policy.
    """
    if floor_fractions is None:
        return FLOOR_FRACTIONS if memory == "alarmed" and fractions == FRACTIONS else ()
    if not floor_fractions:
        return ()
    stakes = some(floor_fractions, "floor_fractions", "fraction", open_fraction)
    if len(stakes) != len(fractions):
        raise SettingsError(f"floor_fractions must be as many as fractions, {len(fractions)}; got {stakes!r}")
    return stakes


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
