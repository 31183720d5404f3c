"""The policy of a cascade."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, cast

from bpac.arguments import fraction, keep, of_kind, one_of, open_fraction, positive, some, whole
from bpac.betting.bounds.certificate import ServedLoss
from bpac.betting.drift.alarm import AlarmSettings
from bpac.betting.ledgers.levels import EvenLevels, Levels, ListedLevels, RelativeLevels
from bpac.betting.payoff import Terms
from bpac.betting.wealth.envelope import EnvelopeWealth
from bpac.errors import SettingsError
from bpac.routing.bettors.bettor import Bettor
from bpac.routing.cascade.bettor import CascadeBettor
from bpac.routing.cascade.rules import Rule, UncertaintyRule
from bpac.routing.exploration.gain_schedules import WhileItPays
from bpac.routing.exploration.schedules import Exploration
from bpac.routing.policies.policy import PlainPolicy
from bpac.routing.policies.stakes import Stakes, chosen_stakes, default_stakes

MEMORIES = ("alarmed", "revocable", "latched")
# Models that a rule passes over are asked after the reference answered, for what they teach the other rules. Where that
# is done more often than accepted answers are audited, it may cost this share of the reference's price.
INFORMATION_SHARE = 0.01


@dataclass(frozen=True, slots=True)
class Cascade(PlainPolicy):
    """Several models, the last of which is the reference (MATH section 15).

    The rules that are there first are every pair of a model with the reference. Rules that weigh predicted losses by
    prices, or ask several models, are fitted later and join.

    Parameters
    ----------
    prices: price of a call of each model, the reference last.
    features: how many numbers each answer has besides its uncertainty.
    first: the stages that each rule asks that is there first, and decides by uncertainty (default: every pair).
    fit_at: number of rounds with answers of all models at which a rule is fitted, in increasing order.
    fitted_shares: the share of α that belongs to each fitted rule; the rest belongs to those that are there first, in
        equal parts.
    memory, fractions, levels, drift, floor_fractions, weights: as for the portfolio policy.
    spread: by how much answers with the same uncertainty are spread by their length, the first of ``features``, see
        ``spreading.py``; for scores with few values (default: 0, not at all).
    """

    passes_over: ClassVar[bool] = True
    # What a journal says that was written before these settings existed.
    unwritten: ClassVar[Mapping[str, Any]] = {"floor_fractions": (), "weights": (), "spread": 0.0}

    prices: tuple[float, ...]
    features: int = 0
    first: tuple[tuple[int, ...], ...] = ()
    # A third of the α costs about a tenth more (generated streams): so one rule is fitted, and the pairs keep the most.
    fit_at: tuple[int, ...] = (128,)
    fitted_shares: tuple[float, ...] = (0.3,)
    memory: str = "alarmed"
    fractions: tuple[float, ...] | None = None
    levels: Levels = RelativeLevels()
    drift: AlarmSettings = AlarmSettings()
    floor_fractions: tuple[float, ...] | None = None
    weights: tuple[float, ...] | None = None
    spread: float = 0.0

    def __post_init__(self) -> None:
        prices = some(self.prices, "prices", "price", positive)
        if len(prices) < 2:
            raise SettingsError("a cascade needs at least two models: give a price for each, the reference last")
        whole(self.features, "features", 0, 64)
        first = _stage_sets(self.first, len(prices)) or tuple((stage,) for stage in range(1, len(prices)))
        keep(self, first=first)
        fit_at = tuple(self.fit_at)
        for rounds in fit_at:
            whole(rounds, "fit_at", 32, 4096)
        if list(fit_at) != sorted(set(fit_at)):
            raise SettingsError(f"fit_at must increase, got {fit_at}")
        one_of(self.memory, "memory", MEMORIES)
        of_kind(self.levels, "levels", (RelativeLevels, EvenLevels, ListedLevels))
        of_kind(self.drift, "drift", (AlarmSettings,))
        keep(self, prices=prices, fit_at=fit_at, spread=fraction(self.spread, "spread"))
        shares = tuple(open_fraction(share, "fitted_shares") for share in self.fitted_shares)
        if len(shares) != len(fit_at) or sum(shares) >= 1.0:
            raise SettingsError(f"fitted_shares needs one share for each fit, which sum to less than 1, got {shares}")
        stakes = chosen_stakes((self.fractions, self.floor_fractions, self.weights), self.memory)
        keep(self, fitted_shares=shares, **stakes._asdict())

    @property
    def exploration(self) -> Exploration:
        """The default schedule: several rules learn from each audit, so that more of them pay than with one."""
        return WhileItPays(horizon=4000)

    @property
    def alarm(self) -> AlarmSettings | None:
        """The drift alarm, with memory ``alarmed``."""
        return self.drift if self.memory == "alarmed" else None

    @property
    def stakes(self) -> Stakes:
        """What the gamblers stake."""
        return Stakes(*(cast(tuple[float, ...], getattr(self, name)) for name in Stakes._fields))

    def improved(self) -> tuple[str, ...]:
        """Settings that were left at their defaults, which were others in earlier versions."""
        return Stakes._fields if self.stakes == default_stakes(self.memory) else ()

    @property
    def first_rules(self) -> list[UncertaintyRule]:
        """The rules that are there first."""
        return [UncertaintyRule(stages, self.spread) for stages in self.first]

    @property
    def stages(self) -> int:
        """The number of models, with the reference."""
        return len(self.prices)

    @property
    def score_names(self) -> tuple[str, ...]:
        """The names of the rules, with those that may join later."""
        first = (f"pair {stages[0]}" if len(stages) == 1 else f"stages {stages}" for stages in self.first)
        return (*first, *(f"fitted {number}" for number in range(1, len(self.fit_at) + 1)))

    @property
    def shares(self) -> tuple[float, ...]:
        """The share of α of each rule, with those that may join later."""
        first = (1.0 - sum(self.fitted_shares)) / len(self.first)
        return (*(first for _ in self.first), *self.fitted_shares)

    def start(self, terms: Terms, alpha: float, served: ServedLoss) -> Bettor:
        """The bettor of a new epoch, which bets at level ``alpha``."""
        wealths = [
            EnvelopeWealth(
                terms,
                -math.log(alpha * share),
                levels=self.levels,
                latched=self.memory != "revocable",
                **self.stakes._asdict(),
            )
            for share in self.shares
        ]
        bettor = CascadeBettor(self.first_rules, wealths, self.fit_at, self.prices, terms)
        return cast(Bettor, bettor)  # its rounds are decisions of a cascade

    def full_propensity(self, rule: Rule, rate: float) -> float:
        """The probability of asking all models where no answer of a rule was accepted.

        Parameters
        ----------
        rule: the rule in force.
        rate: the exploration rate.
        """
        missing = sum(price for stage, price in enumerate(self.prices[:-1], start=1) if stage not in rule.stages)
        if missing == 0.0:
            return 1.0
        return max(rate, min(1.0, INFORMATION_SHARE * self.prices[-1] / missing))


def _stage_sets(sets: object, count: int) -> tuple[tuple[int, ...], ...]:
    """The stages of each rule, from tuples or from lists, as JSON has them."""
    try:
        found = tuple(tuple(whole(stage, "a stage", 1, count - 1) for stage in stages) for stages in sets)  # type: ignore[attr-defined]
    except TypeError as error:
        raise SettingsError(f"first must list the stages of each rule, got {sets!r}") from error
    for stages in found:
        if not stages or list(stages) != sorted(set(stages)):
            raise SettingsError(f"the stages of a rule must increase, got {stages}")
    return found
