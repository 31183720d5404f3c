import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpac import Router
from bpac.betting.bounds.fixed_sample import FRACTIONS
from bpac.betting.drift.alarm import AlarmSettings
from bpac.betting.ledgers.levels import EvenLevels, ListedLevels, RelativeLevels
from bpac.betting.wealth.bets import AdaptiveBet, FixedBet
from bpac.betting.wealth.thresholds import FixedSequence, PriorThreshold
from bpac.routing.cascade.policy import Cascade
from bpac.routing.cascade.rounds import CascadeRound, StageOutcomes
from bpac.routing.cascade.router import CascadeRouter
from bpac.routing.decision import Decision
from bpac.routing.exploration.gain_schedules import GainDriven, WhileItPays
from bpac.routing.exploration.schedules import Constant, NoExploration, TwoStage
from bpac.routing.journal.entries import Entry, Fitted, Labelled, Learned, Opened, Resolved
from bpac.routing.journal.entry_lines import entry_from_json, entry_to_json
from bpac.routing.learning.learned_score import LearnedScore
from bpac.routing.policies import POLICIES, Budget, Fixed, Hoeffding, Naive, Offline, Paper, Policy, Portfolio
from bpac.routing.policies.stakes import GRADED_STAKES
from bpac.routing.settings import Settings
from tests.transcriptions import FLOOR_FRACTIONS

fractions = st.floats(0, 1)
finite = st.floats(allow_nan=False, allow_infinity=False)
json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(), inner, max_size=3)),
    max_leaves=6,
)
answers = st.lists(st.one_of(st.none(), st.lists(fractions, max_size=3).map(tuple)), max_size=3).map(tuple)
stage_outcomes = st.builds(StageOutcomes, answers, st.lists(st.one_of(st.none(), fractions), max_size=3).map(tuple))
cascade_rounds = st.builds(
    CascadeRound,
    st.integers(0),
    st.integers(1),
    answers,
    st.booleans(),
    fractions,
    st.one_of(st.none(), stage_outcomes),
)
entries = st.one_of(
    st.builds(Opened, st.dictionaries(st.text(), json_values, max_size=3)),
    st.builds(
        Labelled,
        uncertainties=st.lists(fractions, min_size=1, max_size=3).map(tuple),
        loss=st.one_of(st.none(), fractions),
        propensity=fractions,
        least_propensity=fractions,
        refused=st.booleans(),
    ),
    st.builds(
        Decision,
        step=st.integers(1),
        uncertainty=fractions,
        threshold=fractions,
        propensity=fractions,
        least_propensity=fractions,
        call_expert=st.booleans(),
        serve_draft=st.booleans(),
        epoch=st.integers(1),
        uncertainties=st.lists(fractions, max_size=3).map(tuple),
        ticket=st.integers(0),
        seen=st.integers(0),
        features=st.lists(st.one_of(st.none(), finite, st.text()), max_size=3).map(tuple),
        cascade=st.one_of(st.none(), cascade_rounds),
    ),
    st.builds(
        Learned,
        score=st.integers(1),
        model=st.dictionaries(st.text(), json_values, max_size=3),
        rounds=st.integers(0),
        gain=finite,
        tickets=st.integers(0),
        shared=st.booleans(),
    ),
    st.builds(
        Resolved,
        step=st.integers(1),
        loss=st.one_of(st.none(), fractions),
        cause=st.text(),
        draft_served=st.booleans(),
        refused=st.booleans(),
        stages=st.one_of(st.none(), stage_outcomes),
    ),
    st.builds(Fitted, st.dictionaries(st.text(), json_values, max_size=3)),
)

grids = st.builds(EvenLevels, st.integers(2, 1001))
levels = st.one_of(
    grids,
    st.builds(RelativeLevels, st.integers(1, 11), st.integers(1, 30)),
    st.builds(ListedLevels, st.lists(fractions, min_size=1, max_size=5).map(tuple)),
)
open_fractions = st.floats(0.01, 0.99)
names = st.text(min_size=1).filter(lambda name: name != "kind")
scores = st.lists(names, min_size=2, max_size=4, unique=True).map(lambda found: dict.fromkeys(found, 1 / len(found)))
alarms = st.builds(AlarmSettings, st.floats(1.1, 9), open_fractions, st.floats(10, 1e5))
policies: st.SearchStrategy[Any] = st.one_of(
    st.sampled_from(list(POLICIES.values())),
    st.builds(
        Portfolio,
        memory=st.sampled_from([None, "alarmed", "revocable", "latched"]),
        fractions=st.lists(open_fractions, min_size=1, max_size=5).map(tuple),
        dither=st.floats(0.0, 0.9),
        levels=st.one_of(st.none(), levels),
        scores=st.one_of(st.just({}), scores),
        drift=alarms,
    ),
    st.builds(Portfolio, assume=st.just("any"), levels=levels),
    st.builds(Budget, st.integers(1)),
    st.builds(
        Cascade,
        prices=st.lists(st.floats(0.01, 99.0), min_size=2, max_size=4).map(tuple),
        features=st.integers(0, 3),
        fit_at=st.just((40, 200)),
        fitted_shares=st.just((0.3, 0.3)),
        memory=st.sampled_from(["alarmed", "revocable", "latched"]),
        levels=levels,
        drift=alarms,
    ),
    st.builds(
        Paper,
        st.one_of(st.builds(AdaptiveBet, open_fractions), st.builds(FixedBet, open_fractions)),
        st.one_of(
            st.just(FixedSequence()),
            st.builds(PriorThreshold, st.one_of(st.none(), st.lists(st.floats(0.1, 9), min_size=1).map(tuple))),
        ),
        grids,
    ),
    st.builds(Naive, grids),
    st.builds(Hoeffding, st.booleans(), grids),
    st.builds(Offline, st.integers(1), st.sampled_from([None, "betting", "clopper-pearson"])),
    st.builds(Fixed, fractions, st.one_of(st.just(0.0), open_fractions)),
)
schedules: st.SearchStrategy[Any] = st.one_of(
    st.builds(Constant, open_fractions),
    st.builds(TwoStage, st.floats(0.5, 0.9), st.floats(0.01, 0.4), st.integers(0)),
    st.builds(
        WhileItPays,
        st.floats(0.1, 2),
        st.floats(0.01, 0.4),
        st.floats(0.5, 0.9),
        st.integers(0, 1 << 53),
        st.integers(1),
    ),
    st.builds(GainDriven, st.floats(0.1, 2), st.floats(0.01, 0.4), st.floats(0.5, 0.9), st.integers(1)),
)


@pytest.mark.no_cover
@given(entry=entries)
def test_an_entry_survives_its_line(entry: Entry) -> None:
    """An entry written as one line of JSON and read back is the same value of the same kind."""
    line = entry_to_json(entry)
    assert "\n" not in line
    copy = entry_from_json(line)
    assert copy == entry
    assert type(copy) is type(entry)


@given(
    settings=st.builds(
        Settings,
        epsilon=open_fractions,
        alpha=open_fractions,
        policy=policies,
        exploration=schedules,
        explore=st.sampled_from(["serve", "shadow"]),
        alpha_epochs=st.sampled_from(["each", "all"]),
        max_owed=st.integers(1),
    )
)
def test_settings_survive_json(settings: Settings) -> None:
    """Settings written as JSON and read back are equal, for every policy, schedule and part of them."""
    assert Settings.from_json(json.loads(json.dumps(settings.to_json()))) == settings


@pytest.mark.parametrize("policy", [Fixed(0.5), Offline()])
def test_settings_without_exploration_survive_json(policy: Policy) -> None:
    """Policies that never explore are written like the others."""
    settings = Settings(0.1, 0.1, policy, NoExploration())
    assert Settings.from_json(json.loads(json.dumps(settings.to_json()))) == settings


def test_a_score_may_have_any_name() -> None:
    """A score whose name is a word of the format is read back, too."""
    settings = Router(0.1, policy=Portfolio(scores={"kind": 0.5, "entropy": 0.5})).settings
    assert Settings.from_json(settings.to_json()) == settings


def test_the_order_of_json_keys_makes_no_difference() -> None:
    """A store that sorts the keys of objects, as JSON allows, gives the same router back, scores and all."""
    entries: list[Entry] = []
    policy = Portfolio(memory="revocable", scores={"margin": 0.5, "entropy": 0.5})
    router = Router(0.3, 0.5, policy, seed=1, journal=entries.append)
    for step in range(30):
        decision = router.decide({"margin": 0.1, "entropy": 0.9})
        if decision.call_expert:
            router.observe(decision, float(step % 7 == 0))
    assert isinstance(entries[0], Opened)
    sorted_settings = json.loads(json.dumps(entries[0].settings, sort_keys=True))
    rebuilt = Router.rebuild([Opened(sorted_settings), *entries[1:]], seed=1)
    scores = {"margin": 0.2, "entropy": 0.8}
    assert rebuilt.decide(scores)._asdict() == router.decide(scores)._asdict()


def test_a_router_goes_on_with_settings_that_are_older_than_a_default() -> None:
    """What its journal does not mention may be wanted otherwise now; anything else may not."""
    old = Settings(
        0.1, 0.1, Portfolio(floor_fractions=()), WhileItPays(whole_game=False, in_time=False), certificate="plain"
    )
    new = Settings(0.1, 0.1, Portfolio(dither=0.1), WhileItPays())
    assert new.covers(old)
    assert new.covers(new)
    assert not old.covers(new)
    assert not Settings(0.2, 0.1, Portfolio(), WhileItPays()).covers(old)
    assert not Settings(0.1, 0.1, Portfolio(), Constant(0.1)).covers(old)
    assert not Settings(0.1, 0.1, Portfolio(memory="latched"), WhileItPays()).covers(old)
    assert not Settings(0.1, 0.1, Portfolio(), WhileItPays(horizon=9)).covers(old)


def test_a_router_goes_on_with_a_default_that_has_changed_since() -> None:
    """Other stakes and other times of a fit promise the same; those that somebody asks for are never exchanged."""

    def settings(policy: Portfolio) -> Settings:
        return Settings(0.1, 0.1, policy, WhileItPays())

    before: dict[str, Any] = {"fit_at": (200, 800), "shares": (0.125, 0.125), "ridge": 4.0, "tries_all": False}
    old = Portfolio(fractions=FRACTIONS, floor_fractions=FLOOR_FRACTIONS, learn=LearnedScore(("length",), **before))
    new = Portfolio(learn=LearnedScore(("length",)))
    assert "tries_all" not in settings(old).to_json()["policy"]["learn"]  # as in a journal of that time
    assert Settings.from_json(settings(old).to_json()) == settings(old)
    assert settings(new).covers(settings(old))
    assert not settings(old).covers(settings(new))
    assert not settings(replace(new, **GRADED_STAKES._asdict())).covers(settings(old))
    assert not settings(replace(new, learn=LearnedScore(("length",), ridge=5.0))).covers(settings(old))
    assert not settings(replace(new, learn=LearnedScore(("task",)))).covers(settings(old))


def test_a_cascade_goes_on_with_the_terms_it_began_with() -> None:
    """Journals from before ``DEFAULT_STAKES``, spread scores and the sharp certificate are read as they were meant."""
    new = CascadeRouter(0.1, Cascade(prices=(1, 4, 20), features=1, spread=0.03), seed=1).settings
    assert new.certificate == "sharp"
    assert new.to_json()["policy"].items() >= {"spread": 0.03, "weights": [0.1, 0.45, 0.45]}.items()
    assert Settings.from_json(new.to_json()) == new
    policy = Cascade(prices=(1, 4, 20), features=1, fractions=FRACTIONS, floor_fractions=FLOOR_FRACTIONS)
    old = Settings(0.1, 0.1, policy, policy.exploration, certificate="plain")
    written = old.to_json()
    assert "certificate" not in written
    assert not {"spread", "weights"} & set(written["policy"])
    assert Settings.from_json(written) == old
    assert new.covers(old)
    assert not old.covers(new)
    assert not Settings(0.1, 0.1, Cascade(prices=(1, 4, 20), features=1, fractions=(0.5,)), policy.exploration).covers(
        old
    )


def test_stakes_for_graded_losses_replace_the_default_ones_only() -> None:
    """Fixed memories have the specification's stakes, and stakes that were asked for stay."""
    assert Portfolio().for_graded_losses().stakes == GRADED_STAKES
    for policy in (Portfolio(memory="latched"), Portfolio(fractions=(0.5,)), Portfolio(floor_fractions=())):
        assert policy.for_graded_losses() == policy
    assert Portfolio(memory="latched").stakes.fractions == Portfolio(floor_fractions=()).stakes.fractions == FRACTIONS
