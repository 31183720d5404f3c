"""The default policy."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, cast

from bpac.arguments import closed_fraction, keep, of_kind, one_of, positive
from bpac.betting.bounds.certificate import ServedLoss
from bpac.betting.drift.alarm import AlarmSettings
from bpac.betting.ledgers.levels import EvenLevels, Levels, ListedLevels, RelativeLevels
from bpac.betting.payoff import Terms
from bpac.betting.wealth.portfolio import ConstantBoundWealth, PortfolioWealth
from bpac.errors import SettingsError
from bpac.routing.bettors import Bettor, Candidates, SplitScores
from bpac.routing.exploration.gain_schedules import WhileItPays
from bpac.routing.exploration.schedules import Exploration, TwoStage
from bpac.routing.learning.learned_score import LearnedScore
from bpac.routing.policies.policy import PlainPolicy
from bpac.routing.policies.stakes import GRADED_STAKES, Stakes, chosen_stakes, default_stakes

Memory = Literal["alarmed", "revocable", "latched"]
MEMORIES = ("alarmed", "revocable", "latched")


@dataclass(frozen=True, slots=True)
class Portfolio(PlainPolicy):
    """The default (MATH section 3): gamblers at fixed fractions, thresholds at any score.

    Parameters
    ----------
    memory: what becomes of a certified threshold: ``latched`` keeps it, ``revocable`` lets it
        follow the wealth, ``alarmed`` keeps it until a drift alarm rings.
    assume: ``iid``, or ``any`` for arbitrary streams (section 4), which needs ``revocable``.
    fractions: stakes of the gamblers (θ); ``Stakes`` has the defaults of these, ``floor_fractions`` and ``weights``
        together: with memory ``alarmed`` they are ``DEFAULT_STAKES``, otherwise, or if one of the three is given, those
        of section 3.
    levels: where thresholds may lie; with ``any`` the prior is uniform on them.
    scores: names and shares of α, where several scores compete (section 8).
    drift: the alarm of ``alarmed``.
    floor_fractions: stakes of the gamblers in rounds whose least propensity is the exploration floor (section 16);
        empty for the same as in other rounds.
    dither: by how much scores are lowered at random at most, relative to themselves (``routing/dithering.py``); for
        scores with few values (default: 0, not at all).
    learn: scores that are learned on the way (section 14); none are by default.
    weights: shares of the money with which the gamblers begin, one for each of ``fractions``, which must then be
        ascending; empty for equal shares.
    """

    passes_over: ClassVar[bool] = True
    # What a journal says that was written before these settings existed.
    unwritten: ClassVar[Mapping[str, Any]] = {"floor_fractions": (), "dither": 0.0, "learn": None, "weights": ()}

    memory: Memory | None = None
    assume: Literal["iid", "any"] = "iid"
    fractions: tuple[float, ...] | None = None
    levels: Levels | None = None
    scores: Mapping[str, float] = field(default_factory=dict)
    drift: AlarmSettings = AlarmSettings()
    floor_fractions: tuple[float, ...] | None = None
    dither: float = 0.0
    learn: LearnedScore | None = None
    weights: tuple[float, ...] | None = None

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
        keep(self, levels=levels, scores=_shares(self.scores))
        stakes = chosen_stakes((self.fractions, self.floor_fractions, self.weights), self.memory)
        keep(self, **stakes._asdict())
        if self.stakes.floor_fractions and arbitrary:
            # The promise is then about a plain average, in which every round has the same stake.
            raise SettingsError('floor_fractions must be empty with assume = "any"')
        keep(self, dither=closed_fraction(self.dither, "dither"))
        if self.dither == 1.0:
            raise SettingsError("dither must be below 1: it is the largest share by which a score is lowered")

    @property
    def stakes(self) -> Stakes:
        """What the gamblers stake."""
        return Stakes(*(cast(tuple[float, ...], getattr(self, name)) for name in Stakes._fields))

    def improved(self) -> tuple[str, ...]:
        """Settings that were left at their defaults, which were others in earlier versions."""
        return Stakes._fields if self.stakes == default_stakes(self.memory) else ()

    def for_graded_losses(self) -> "Portfolio":
        """The policy for losses most of which are neither 0 nor close to 1, such as a judge's marks.

        Any stakes keep the promise. A policy with other stakes than the default ones is left as it is.
        """
        graded = self.memory == "alarmed" and bool(self.improved())
        return replace(self, **GRADED_STAKES._asdict()) if graded else self

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
            return Candidates(
                lambda score: self._wealth(terms, alpha * learn.share(score), score),
                learn.returned,
                most=1 + len(learn.fit_at),
                retires=learn.retires,
            )
        if not self.scores:
            return self._wealth(terms, alpha, None)
        return SplitScores([self._wealth(terms, alpha * share, i) for i, share in enumerate(self.scores.values())])

    def _wealth(self, terms: Terms, alpha: float, score: int | None) -> PortfolioWealth:
        levels = cast(Levels, self.levels)  # set in __post_init__
        latched = self.memory != "revocable"
        kind, bar = PortfolioWealth, -math.log(alpha)
        if self.assume == "any":
            kind, bar = ConstantBoundWealth, math.log(levels.top / alpha)
        return kind(terms, bar, levels=levels, latched=latched, score=score, **self.stakes._asdict())


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
