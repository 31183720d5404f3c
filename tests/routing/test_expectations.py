"""What is expected of the queries to come sets the exploration rate, stands in the journal, and survives everything."""

import random
from typing import Any

import pytest

from bpac.errors import InputError, JournalError, SettingsError
from bpac.routing.audit.audit import audit_journal
from bpac.routing.cascade.policy import Cascade
from bpac.routing.cascade.router import CascadeRouter
from bpac.routing.decision import Decision
from bpac.routing.exploration.gain_schedules import GainDriven, WhileItPays
from bpac.routing.journal.entries import Entry, Expected
from bpac.routing.journal.entry_lines import entry_from_json, entry_to_json
from bpac.routing.learning.learned_score import LearnedScore
from bpac.routing.policies import Paper, Policy, Portfolio
from bpac.routing.router import Router

# The threshold opens, and after some hundred rounds audits no longer pay at their usual price.
PAYS = WhileItPays(horizon=200, every=16)


def play(router: Router, steps: int, seed: int = 1, *, features: bool = False) -> None:
    """Decide queries of which those above 0.6 often lose."""
    dice = random.Random(seed)
    for _ in range(steps):
        uncertainty = dice.random()
        known: dict[str, Any] = {"features": {"length": dice.random()}} if features else {}
        decision = router.decide(uncertainty, **known)
        if decision.call_expert:
            router.observe(decision, float(dice.random() < (0.01 if uncertainty < 0.6 else 0.5)))


def rate_of(router: Router) -> float:
    """The exploration rate in force."""
    rate = router.summary().exploration_rate
    assert rate is not None
    return rate


def test_the_rate_follows_price_and_traffic_and_is_least_while_the_expert_is_busy() -> None:
    """Audits pay for longer while they are cheap or much traffic is expected; a busy expert audits at the floor."""
    router = Router(0.1, exploration=PAYS, seed=1)
    play(router, 500)
    assert (router.threshold > 0.0, rate_of(router)) == (True, 0.05)
    router.expect(audit_price=0.01)
    assert rate_of(router) == 0.9
    router.expect(audit_price=0.01, busy=True)
    assert rate_of(router) == 0.05
    router.expect(rounds=1_000_000)
    assert rate_of(router) == 0.9
    router.expect(audit_price=1e6, rounds=1_000_000)
    assert rate_of(router) == 0.05
    router.expect()
    assert router.expected == Expected()


def test_a_schedule_in_proportion_to_the_gain_is_divided_by_the_price() -> None:
    """Half the price doubles the rate, within its limits."""
    router = Router(0.1, exploration=GainDriven(eagerness=1.0), seed=1)
    play(router, 800)
    router.expect(audit_price=0.999)
    usual = rate_of(router)
    router.expect(audit_price=0.4995)
    assert rate_of(router) == pytest.approx(2.0 * usual)


@pytest.mark.parametrize(
    "policy",
    [Portfolio(), Portfolio(learn=LearnedScore(features=("length",), fit_at=(300,))), Paper()],
    ids=["portfolio", "learned", "paper"],
)
def test_a_journal_with_expectations_gives_the_same_router(policy: Policy) -> None:
    """To the same bits from the journal and from a snapshot, and an auditor computes the same rates."""
    entries: list[Entry] = []
    exploration = PAYS if isinstance(policy, Portfolio) else policy.exploration
    router = Router(0.1, policy=policy, exploration=exploration, seed=1, journal=entries.append)
    features = policy.learned is not None
    for number in range(8):
        router.expect(audit_price=1.0 if number % 3 else 0.05, busy=number % 4 == 3, rounds=100 * number)
        play(router, 100, number, features=features)
    assert sum(isinstance(entry, Expected) for entry in entries) == 8
    lines = [entry_to_json(entry) for entry in entries]
    again = [entry_from_json(line) for line in lines]
    assert Router.rebuild(again).snapshot() == router.snapshot()
    loaded = Router.rebuild([], snapshot=router.snapshot())
    assert (loaded.snapshot(), loaded.expected) == (router.snapshot(), router.expected)
    assert audit_journal(line + "\n" for line in lines).differences == []
    # Without the entry that made audits cheap, the recorded propensities are not those of the rule.
    if isinstance(policy, Portfolio):
        changed = [line.replace('"audit_price":0.05', '"audit_price":50.0') for line in lines]
        assert audit_journal(line + "\n" for line in changed).differences != []


def test_tickets_keep_the_rate_of_their_arrival() -> None:
    """A query that arrived before the expert was busy is decided as it arrived, and the next one is not."""
    router = Router(0.1, exploration=PAYS, seed=1)
    before = router.arrive()
    router.expect(busy=True)
    after = router.arrive()
    assert (before.rate, after.rate) == (0.9, 0.05)
    assert router.decide(0.5, ticket=before).ticket == 1


def test_what_is_expected_outlasts_a_drift_alarm() -> None:
    """The rates of a new epoch begin with the price and the load that were said before it."""
    router = Router(0.1, exploration=PAYS, seed=1)
    play(router, 600)
    router.expect(audit_price=0.5, rounds=7000, busy=True)
    dice = random.Random(1)
    while router.epoch == 1:
        decision = router.decide(0.3 * dice.random())
        if decision.call_expert:
            router.observe(decision, 1.0)
    learner = router._route.current.learner
    assert learner is not None
    assert (learner.prospects.audit_price, learner.prospects.rounds, rate_of(router)) == (0.5, 7000, 0.05)


def test_an_alarm_raises_the_rate_although_the_expert_is_busy() -> None:
    """Safety comes before load: a raised alarm audits half of the drafts."""
    router = Router(0.1, exploration=PAYS, seed=1)
    play(router, 500)
    router.expect(busy=True)
    while rate_of(router) < 0.5:
        decision = router.decide(0.1)
        if decision.call_expert:
            router.observe(decision, 1.0)
        assert router.epoch == 1


def test_cascades_have_expectations_too() -> None:
    """The rate of a cascade follows the price and the load."""
    entries: list[Entry] = []
    router = CascadeRouter(0.1, Cascade(prices=(1.0, 4.0, 16.0), features=0), seed=1, journal=entries.append)
    assert router.arrive().rate > 0.05
    router.expect(busy=True)
    assert router.arrive().rate == 0.05
    router.expect(audit_price=2.0, rounds=5000)
    assert router.arrive().rate > 0.05
    assert CascadeRouter.rebuild(entries).snapshot() == router.snapshot()


def test_saying_the_same_again_writes_nothing() -> None:
    """A gateway may say it with every request."""
    entries: list[Entry] = []
    router = Router(0.1, seed=1, journal=entries.append)
    for _ in range(3):
        router.expect(busy=True)
    assert entries[1:] == [Expected(busy=True)]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ({"audit_price": 0.0}, SettingsError),
        ({"audit_price": float("nan")}, SettingsError),
        ({"audit_price": float("inf")}, SettingsError),
        ({"rounds": -1}, SettingsError),
        ({"rounds": 1.5}, SettingsError),
        ({"busy": 1}, InputError),
    ],
)
def test_expectations_that_are_no_numbers_are_refused(values: dict[str, Any], kind: type[Exception]) -> None:
    """Nothing is written then."""
    entries: list[Entry] = []
    router = Router(0.1, seed=1, journal=entries.append)
    with pytest.raises(kind):
        router.expect(**values)
    assert len(entries) == 1


@pytest.mark.parametrize("entry", [Expected(audit_price=0.0), Expected(rounds=-1), Expected(float("inf"))])
def test_a_journal_with_impossible_expectations_is_refused(entry: Expected) -> None:
    """No router can have written it."""
    entries: list[Entry] = []
    router = Router(0.1, seed=1, journal=entries.append)
    assert isinstance(router.decide(0.5), Decision)
    with pytest.raises(JournalError, match="entry 3 contradicts itself"):
        Router.rebuild([*entries, entry])
