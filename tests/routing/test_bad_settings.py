import math
from collections.abc import Callable
from typing import Any

import pytest

from bpac import Router
from bpac.betting.ledgers.levels import EvenLevels, ListedLevels
from bpac.betting.wealth.bets import AdaptiveBet, FixedBet
from bpac.betting.wealth.thresholds import PriorThreshold
from bpac.errors import SettingsError
from bpac.routing.exploration.gain_schedules import GainDriven, WhileItPays
from bpac.routing.exploration.schedules import Constant, NoExploration, TwoStage
from bpac.routing.policies import POLICIES, Budget, Fixed, Hoeffding, Naive, Offline, Paper, Portfolio, named_policy
from bpac.routing.segments import Segments
from bpac.routing.settings import Settings


def router(**settings: Any) -> Callable[[], object]:
    """Start a router with these settings, later."""
    return lambda: Router(**{"epsilon": 0.1, **settings})


def make(kind: Callable[..., object], *arguments: Any, **settings: Any) -> Callable[[], object]:
    """Make a value with these settings, later."""
    return lambda: kind(*arguments, **settings)


def playing(policy: Callable[..., Any], **settings: Any) -> Callable[[], object]:
    """Start a router with a policy that has these settings, later."""
    return lambda: Router(0.1, policy=policy(**settings))


class Homemade(Portfolio):
    """A policy that is not among those a journal can name."""


NONSENSE: list[tuple[Callable[[], object], str]] = [
    *[(router(epsilon=value), "epsilon") for value in (0, 1, 1.0, 1.5, -0.1, math.nan, math.inf, "0.1", None, True)],
    *[(router(alpha=value), "alpha") for value in (0, 0.0, 1, 2.0, -0.1, math.nan, "0.1", None, False)],
    *[(router(max_owed=value), "max_owed") for value in (0, -1, 2.0, True, None, "9")],
    (router(policy="roulette"), "policy must be one of portfolio, budget, paper"),
    (router(explore="hide"), "explore must be one of serve, shadow; got 'hide'"),
    (router(alpha_epochs="some"), "alpha_epochs must be one of all, each"),
    (router(memory="forgetful"), "memory must be one of alarmed, revocable, latched"),
    (router(memory=""), "memory must be one of"),
    (router(assume="worst"), "assume must be one of iid, any"),
    (router(assume="any", memory="latched"), 'memory "latched" holds for i.i.d. streams only'),
    (router(assume="any", memory="alarmed"), 'with assume = "any" use "revocable"'),
    (router(policy="paper", memory="latched"), 'belong to policy "portfolio", not to "paper": leave them out'),
    (router(policy="budget", assume="any"), 'belong to policy "portfolio"'),
    (router(policy=Portfolio(), memory="latched"), "set them on the policy object instead"),
    (router(policy=Portfolio(), assume="any"), "set them on the policy object instead"),
    *[(router(policy=policy, exploration=NoExploration()), "must explore: give it a schedule with a rate above 0")
      for policy in ("portfolio", "paper", "budget", "naive", "hoeffding")],
    (make(Portfolio, memory="forgetful"), "memory must be one of"),
    (make(Portfolio, assume="worst"), "assume must be one of"),
    (make(Portfolio, fractions=()), "fractions must not be empty"),
    (make(Portfolio, fractions=(0.5, 1.0)), "fractions? must lie strictly between 0 and 1"),
    (make(Portfolio, fractions=(0.0,)), "fractions? must"),
    (make(Portfolio, fractions=("0.5",)), "fractions? must"),
    (make(Portfolio, floor_fractions=(0.5,)), "floor_fractions must be as many as fractions, 4"),
    (make(Portfolio, floor_fractions=(0.5, 0.5, 0.5, 1.0)), "must lie strictly between 0 and 1"),
    (make(Portfolio, assume="any", floor_fractions=(0.5,) * 4), 'must be empty with assume = "any"'),
    (make(Portfolio, fractions=(0.2, 0.4), weights=(0.5,)), "weights must be as many as fractions, 2, and sum to 1"),
    (make(Portfolio, fractions=(0.2, 0.4), weights=(0.5, 0.4)), "weights must be as many .* and sum to 1"),
    (make(Portfolio, fractions=(0.2, 0.4), weights=(0.5, -0.5)), "weights|share"),
    (make(Portfolio, fractions=(0.4, 0.2), weights=(0.5, 0.5)), "with weights, fractions must be ascending"),
    (
        make(Portfolio, fractions=(0.2, 0.4), floor_fractions=(0.4, 0.3), weights=(0.5, 0.5)),
        "with weights, floor_fractions must be ascending",
    ),
    (make(Portfolio, dither=-0.1), "dither"),
    (make(Portfolio, dither=1.0), "dither must be below 1"),
    (make(Portfolio, scores={"a": 0.5, "b": 0.4}), "shares of α must sum to 1, got 0.9"),
    (make(Portfolio, scores={"a": 1.5, "b": -0.5}), "share of b must be"),
    (make(Portfolio, scores={"a": 1.0, "b": 0.0}), "share of b must be"),
    (make(Portfolio, scores={"a": 1.0}), "one score needs no shares: leave scores out"),
    (playing(Paper, bet=FixedBet(0.06)), "can lose more than 0.999 of its wealth"),
    (router(policy=Paper(bet=FixedBet(0.05)), exploration=Constant(0.01)), "lower the bet or raise the exploration"),
    (playing(Paper, rule=PriorThreshold((1.0,) * 5)), "the prior has 5 weights for 1001 grid points"),
    (lambda: Router(0.1, policy=Paper(rule=PriorThreshold(()), grid=EvenLevels(5))), "prior"),
    (make(Budget, first=0), "first must be at least 1"),
    (make(Budget, first=2.5), "first must be a whole number"),
    (make(Offline, size=0), "size must be at least 1"),
    (make(Offline, bound="guess"), "bound must be one of clopper-pearson, hoeffding-bentkus, betting"),
    (make(Fixed, 1.5), "threshold must be"),
    (make(Fixed, None), "threshold must be"),
    (make(Fixed, 0.5, explores=-0.1), "explores must"),
    (make(Fixed, 0.5, explores=1.0), "explores must"),
    *[(make(Constant, value), "value must") for value in (0, 0.0, 1.0, -0.1, math.nan, "0.1", True)],
    (make(TwoStage, 0.0), "warmup_rate must"),
    (make(TwoStage, 0.7, 0.0), "deploy_rate must"),
    (make(TwoStage, 0.7, 1.0), "deploy_rate must"),
    (make(TwoStage, 0.1, 0.2), "warmup_rate 0.1 is below deploy_rate 0.2: swap them"),
    (make(TwoStage, warmup_steps=-1), "warmup_steps must be at least 0"),
    (make(TwoStage, warmup_steps=1.5), "warmup_steps must be a whole number"),
    (make(GainDriven, eagerness=0.0), "eagerness must"),
    (make(GainDriven, floor=0.0), "floor must"),
    (make(GainDriven, most=1.0), "most must"),
    (make(GainDriven, floor=0.5, most=0.4), "most 0.4 is below floor 0.5: swap them"),
    (make(GainDriven, every=0), "every must be at least 1"),
    (make(WhileItPays, eagerness=-1.0), "eagerness must"),
    (make(WhileItPays, most=0.01), "most 0.01 is below floor 0.05: swap them"),
    (make(WhileItPays, horizon=-1), "horizon must be at least 0"),
    (make(WhileItPays, horizon=10**400), "horizon must be at least 0 and at most"),
    (make(EvenLevels, 1), "count must be at least 2"),
    (make(ListedLevels, ()), "thresholds must not be empty"),
    (make(Segments, router(), 0.0), "alpha must"),
    (make(Segments, router(), 0.1, most=0), "most must be at least 1"),
    (make(Segments, router(), 0.1, alpha_scope="some"), "alpha_scope must be one of each, all"),
    (make(named_policy, "portfolio", "forgetful"), "memory must be one of"),
    (make(named_policy, "portfolio", None, "worst"), "assume must be one of"),
    (make(Settings.from_json, 3), "settings must be an object, got 3"),
    (make(Settings.from_json, {"epsilon": 0.1, "colour": "red"}), "settings: unknown key 'colour'; known: alpha,"),
    (make(Settings.from_json, {"epsilon": 0.1}), "settings: .*missing"),
    (make(Settings.from_json, {"policy": {"kind": "Budget", "last": 3}}), "settings.policy: unknown key 'last'"),
    (make(Settings.from_json, {"policy": {"kind": "Roulette"}}), "settings.policy: unknown kind 'Roulette'; known:"),
]  # fmt: skip


@pytest.mark.parametrize(("start", "says"), NONSENSE, ids=[f"{n} {says[:40]}" for n, (_, says) in enumerate(NONSENSE)])
def test_settings_out_of_range_or_in_conflict_are_refused(start: Callable[[], object], says: str) -> None:
    """A setting out of range, of the wrong class or in conflict with another is refused by name before any round."""
    with pytest.raises(SettingsError, match=says):
        start()


OF_ANOTHER_KIND: list[tuple[Callable[[], object], str]] = [
    (router(policy=None), "policy must be one of"),
    (router(policy=3), "policy must be one of"),
    (router(policy=TwoStage()), "policy must be one of"),
    (router(policy=Homemade()), "policy must be one of"),
    (router(policy=AdaptiveBet()), "policy must be one of"),
    (router(exploration=Constant(1e-17)), "exploration rates must be at least 1e-06, got 1e-17"),
    (router(exploration="often"), "exploration must be one of"),
    (router(exploration=0.05), "exploration must be one of"),
    (router(exploration=Budget()), "exploration must be one of"),
    (router(exploration=AdaptiveBet()), "exploration must be one of"),
    (playing(Portfolio, fractions=0.5), "fractions"),
    (playing(Portfolio, levels=1001), "levels"),
    (playing(Portfolio, levels=TwoStage()), "levels"),
    (playing(Portfolio, drift=None), "drift"),
    (playing(Portfolio, scores=["a", "b"]), "scores"),
    (playing(Paper, bet=0.05), "bet"),
    (playing(Paper, rule="prior"), "rule"),
    (playing(Paper, grid=ListedLevels((0.5,))), "grid"),
    (playing(Naive, grid=1001), "grid"),
    (playing(Hoeffding, grid=1001), "grid"),
]  # fmt: skip


@pytest.mark.parametrize(("start", "names"), OF_ANOTHER_KIND, ids=range(len(OF_ANOTHER_KIND)))
def test_a_setting_of_the_wrong_class_is_refused(start: Callable[[], object], names: str) -> None:
    """A schedule where a policy belongs, a number where a bet belongs: the message names the setting."""
    with pytest.raises(SettingsError, match=names):
        start()


@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_name_makes_a_router(name: str) -> None:
    """Every ready policy can be chosen by its name."""
    assert Router(0.1, policy=name).settings.policy == POLICIES[name]


@pytest.mark.parametrize(("memory", "assume"), [("latched", None), (None, "any"), ("revocable", "any"), (None, "iid")])
def test_memory_and_assume_choose_a_portfolio(memory: Any, assume: Any) -> None:
    """By name or as an object, the same words give the same policy, with the levels that go with them."""
    by_name = named_policy("portfolio", memory, assume)
    assert by_name == Portfolio(memory=memory, assume=assume or "iid")
