"""Queries that the expert refuses are fair rounds: they neither raise nor lower a threshold (MATH section 13)."""

import math
from typing import Any

import pytest

from bpac import Decision, Router
from bpac.betting.bounds.fixed_sample import FRACTIONS
from bpac.errors import AlreadyResolved, InputError
from bpac.routing.exploration.schedules import Constant
from bpac.routing.journal.entries import Entry
from bpac.routing.policies import Offline, Portfolio
from tests.routing.test_epochs import audit, opened

EPSILON, ALPHA, RATE = 0.1, 0.1, 0.2
POINTS = (0.01, 0.3, 0.5, 1.0)


def routed(**settings: Any) -> Router:
    """A router whose threshold is 1 and which explores a fifth of the queries."""
    router = Router(EPSILON, ALPHA, Portfolio(memory="latched"), exploration=Constant(RATE), seed=3, **settings)
    while router.threshold < 1.0:
        router.observe(router.decide(0.5), 0.0)
    return router


def gains(router: Router, before: list[float]) -> list[float]:
    """By how much the wealth of each threshold has grown."""
    return [router.log_wealth(point) - was for point, was in zip(POINTS, before, strict=True)]


def wealth(router: Router) -> list[float]:
    """The log-wealth of some thresholds."""
    return [router.log_wealth(point) for point in POINTS]


def decided(router: Router, *, call_expert: bool) -> Decision:
    """The first decision that the coin makes one way, and the wealth before it."""
    while True:
        decision = router.decide(0.2)
        if decision.call_expert == call_expert:
            return decision
        if decision.call_expert:
            router.observe(decision, 0.0)


@pytest.mark.parametrize("late", [False, True])
def test_a_refused_audit_is_booked_at_every_threshold(late: bool) -> None:
    """It pays ε − ε/π, so that with the drafts that the coin spared it pays nothing on average."""
    kept, bound = 1.0 - RATE, (1.0 - RATE) / RATE - EPSILON
    router = routed()
    state = router.snapshot()
    decision = decided(router, call_expert=True)
    rounds = decision.step - state["state"]["step"] - 1
    if late:
        router.summary()  # reading a router charges the open audit first
    router.refuse(decision)
    plain = Router.rebuild([], snapshot=state, seed=3)
    other = decided(plain, call_expert=True)
    plain.observe(other, 0.0)
    assert kept * (EPSILON / kept) / RATE == pytest.approx(EPSILON / RATE)
    for point in POINTS:
        lost = math.exp(router.log_wealth(point) - plain.log_wealth(point))
        factors = [(1 + f * (EPSILON - EPSILON / RATE) / bound) / (1 + f * EPSILON / bound) for f in FRACTIONS]
        assert min(factors) < lost < max(factors)
    assert rounds >= 0
    assert len({round(gain, 9) for gain in gains(router, wealth(plain))}) == 1


def test_a_refusal_without_a_coin_pays_nothing() -> None:
    """Where every draft is audited, refusals leave the wealth of every threshold as it was."""
    router = Router(EPSILON, ALPHA, seed=1)
    router.observe(router.decide(0.4), 1.0)
    before = wealth(router)
    for _ in range(500):
        router.refuse(router.decide(0.3))
    assert gains(router, before) == [0.0] * len(POINTS)
    assert router.summary().refused == 500


@pytest.mark.parametrize("policy", ["portfolio", "paper", "paper-prior", "hoeffding", "naive", "budget"])
def test_refusals_alone_open_nothing(policy: str) -> None:
    """Thousands of requests that the expert refuses certify no threshold: there was nothing to win."""
    entries: list[Entry] = []
    router = Router(EPSILON, ALPHA, policy, seed=1, journal=entries.append)
    for _ in range(2000):
        decision = router.decide(0.0)
        if decision.call_expert:
            router.refuse(decision)
    # The last two may keep drafts before anything is certified; what they serve then counts ε at most.
    assert router.threshold == 0.0 or policy in ("naive", "budget")
    assert Router.rebuild(entries).snapshot() == router.snapshot()


def test_refusals_close_nothing() -> None:
    """A caller whose requests only the expert refuses neither rings the alarm nor moves the threshold."""
    router = opened()
    while router.decide(0.5).propensity != 0.05:
        pass
    threshold = router.threshold
    for _ in range(5000):
        decision = router.decide(0.0)
        if decision.call_expert:
            router.refuse(decision, draft_served=True)
    assert (router.epoch, router.threshold) == (1, threshold)


def test_a_calibration_set_leaves_refusals_out() -> None:
    """Offline calibration is about queries that the expert answers: it takes another one for each refused."""
    router = Router(EPSILON, ALPHA, Offline(size=30), seed=1)
    refused = [router.decide(0.9) for _ in range(10)]
    for decision in refused:
        router.refuse(decision)
    for _ in range(30):
        assert router.threshold == 0.0
        router.observe(router.decide(0.2), 0.0)
    assert router.threshold > 0.2
    late = router.decide(1.0)
    router.refuse(late)
    assert router.threshold > 0.2


@pytest.mark.parametrize("explore", ["serve", "shadow"])
def test_the_certificate_counts_a_refusal_as_epsilon(explore: Any) -> None:
    """A refused audit has the loss ε there, and a draft served in its place adds that much."""
    router = routed(explore=explore)
    decision = decided(router, call_expert=True)
    before = router.snapshot()["state"]["served"]
    router.refuse(decision, draft_served=explore == "serve")
    lost = routed(explore=explore)
    lost.observe(decided(lost, call_expert=True), EPSILON)
    after, expected = (each.snapshot()["state"]["served"] for each in (router, lost))
    assert after["upper"] == expected["upper"] != before["upper"]
    assert after["lower"] == expected["lower"]
    assert after["uncovered"] == (EPSILON if explore == "serve" else 0.0)


def test_a_refusal_is_an_outcome() -> None:
    """A round has one outcome: a second one is refused, but one that was given up may still be a refusal."""
    router = opened()
    decision, given_up = audit(router), audit(router)
    router.refuse(decision)
    with pytest.raises(AlreadyResolved):
        router.refuse(decision)
    with pytest.raises(AlreadyResolved):
        router.observe(decision, 0.0)
    router.forfeit(given_up)
    router.refuse(given_up)
    with pytest.raises(AlreadyResolved):
        router.observe(given_up, 0.0)
    with pytest.raises(InputError, match="draft_served must be a bool"):
        router.refuse(audit(router), draft_served=1)  # type: ignore[arg-type]


def test_a_refusal_of_an_earlier_epoch_leaves_the_new_one_alone() -> None:
    """It belongs to the epoch in which it was decided."""
    router = opened()
    old = audit(router)
    epoch = router.epoch
    while router.epoch == epoch:
        router.observe(audit(router), 1.0)
    before = router.bettor_state()
    router.refuse(old)
    assert router.bettor_state() == before


def test_several_scores_see_a_refusal_at_every_threshold() -> None:
    """Each score's wealth books it at score 0."""
    router = Router(EPSILON, ALPHA, Portfolio(scores={"a": 0.5, "b": 0.5}), seed=1)
    before = router.bettor_state()
    router.refuse(router.decide({"a": 0.2, "b": 0.7}))
    after = router.bettor_state()
    assert [part["common"] for part in after["wealths"]] != [part["common"] for part in before["wealths"]]
    assert {row[0] for part in after["wealths"] for row in part["losses"]} == {0}
