"""The least number of further rounds without loss: never fewer, and no more if there is no loss."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpac.betting.ledgers.levels import EvenLevels
from bpac.dashboard.estimates.clean_rounds import MOST_ROUNDS, clean_rounds_needed
from bpac.dashboard.estimates.wealth import wealth_curve
from bpac.routing.exploration.schedules import Constant
from bpac.routing.policies import Budget, Hoeffding, Offline, Portfolio
from bpac.routing.router import Router
from tests.routing.learning.drafts import LEARN, Draft, learner, send

OPTIONS: dict[str, dict[str, Any]] = {
    "default": {},
    "latched": {"memory": "latched", "alpha": 0.01},
    "any": {"assume": "any", "epsilon": 0.3},
    "shadow": {"explore": "shadow", "epsilon": 0.3},
    "grid": {"policy": Portfolio(levels=EvenLevels(11))},
    "two scores": {"policy": Portfolio(scores={"one": 0.3, "two": 0.7})},
    "epochs together": {"alpha_epochs": "all"},
    "paper": {"policy": "paper"},
    "paper with a prior": {"policy": "paper-prior", "epsilon": 0.3},
    "budget": {"policy": Budget(first=50), "epsilon": 0.3},
    "hoeffding": {"policy": Hoeffding(), "epsilon": 0.9, "exploration": Constant(0.5)},
    "naive": {"policy": "naive"},
    "offline": {"policy": Offline(size=60)},
}


def started(name: str) -> Router:
    """A fresh router of that kind."""
    return Router(**{"epsilon": 0.1, "alpha": 0.1, "seed": 1, **OPTIONS[name]})


def ask(router: Router, uncertainty: float) -> Any:
    """A decision, whatever the number of scores."""
    names = router.settings.policy.score_names
    return router.decide(dict.fromkeys(names, uncertainty) if names else uncertainty)


@pytest.mark.parametrize("uncertainty", [0.0, 0.5])
@pytest.mark.parametrize("name", [name for name in OPTIONS if name != "two scores"])
def test_the_last_of_the_rounds_needed_opens_a_threshold(name: str, uncertainty: float) -> None:
    """From the start, after some losses, and with outcomes that are owed: the last clean round opens a threshold."""
    router = started(name)
    for step in range(7):
        decision = ask(router, uncertainty)
        if step % 3 and decision.call_expert and not router.threshold:
            router.observe(decision, float(step == 4))
    if router.threshold:
        router = started(name)  # quick ones are open by now: from the start, then
    needed = clean_rounds_needed(router)
    assert needed is not None
    assert needed < MOST_ROUNDS
    for decision in router.owed:
        router.observe(decision, 0.0)
    for left in range(needed, 0, -1):
        assert router.threshold == 0.0
        if left in (1, needed // 2):
            assert clean_rounds_needed(router) == left
        router.observe(ask(router, uncertainty), 0.0)
    assert router.threshold > 0.0
    assert clean_rounds_needed(router) is None


@given(
    name=st.sampled_from(["default", "any", "shadow", "two scores", "paper", "budget"]),
    losses=st.lists(st.sampled_from([0.0, 0.0, 0.0, 0.2, 1.0, None]), min_size=1, max_size=60),
    data=st.data(),
)
def test_no_threshold_opens_earlier(name: str, losses: list[float | None], data: st.DataObject) -> None:
    """A bound that was given at any time holds, whatever the outcomes are and whenever they come."""
    router = started(name)
    promised: list[int] = []
    waiting = []
    for loss in losses:
        needed = clean_rounds_needed(router)
        if needed is None:
            break
        promised.append(router.step + needed)
        decision = ask(router, data.draw(st.sampled_from([0.0, 0.3, 1.0])))
        assert decision.call_expert
        waiting.append((decision, loss))
        while data.draw(st.booleans()) and waiting:
            due, known = waiting.pop()
            if known is not None:
                router.observe(due, known)
        if router.threshold > 0.0:
            assert all(router.step >= bound for bound in promised)


def test_several_scores_compete() -> None:
    """The one with the larger share opens first, and is used when it has accepted something."""
    router = started("two scores")
    needed = clean_rounds_needed(router)
    assert needed is not None
    for _ in range(needed):
        assert router.threshold == 0.0
        router.observe(ask(router, 0.5), 0.0)
    assert clean_rounds_needed(router) == 0
    for _ in range(2):
        router.observe(ask(router, 0.5), 0.0)
    assert router.threshold > 0.0


def test_after_a_drift_the_count_starts_again() -> None:
    """A new epoch starts without wealth, and where all epochs share alpha it needs more."""
    for alpha_epochs in ("each", "all"):
        router = Router(0.1, 0.1, alpha_epochs=alpha_epochs, seed=3)
        first = clean_rounds_needed(router)
        while router.epoch == 1:
            decision = router.decide(0.2)
            if decision.call_expert:
                router.observe(decision, float(router.step > 200))
        again = clean_rounds_needed(router)
        assert first is not None
        assert again is not None
        assert (again > first) == (alpha_epochs == "all")
        for _ in range(again):
            assert router.threshold == 0.0
            router.observe(router.decide(0.2), 0.0)
        assert router.threshold > 0.0


def test_none_where_no_threshold_will_open() -> None:
    """A fixed threshold never moves, and a calibration that found no threshold is not repeated."""
    assert clean_rounds_needed(Router(0.1, policy="always")) is None
    assert clean_rounds_needed(Router(0.1, policy=Offline(size=20))) is None, "too few for this limit"
    router = Router(0.1, policy=Offline(size=30))
    assert clean_rounds_needed(router) == 30
    for _ in range(30):
        router.observe(router.decide(0.0), 1.0)
    assert router.threshold == 0.0
    assert clean_rounds_needed(router) is None


def test_a_number_that_is_too_large_is_not_counted_out() -> None:
    """A very slow policy is simulated for a limited number of rounds; the result is still a lower bound."""
    assert clean_rounds_needed(Router(0.01, policy="hoeffding")) == MOST_ROUNDS
    router = Router(0.05, 0.1, seed=1)
    for _ in range(2000):
        router.observe(router.decide(0.0), 1.0)
    needed = clean_rounds_needed(router)
    assert needed is not None
    assert needed > MOST_ROUNDS, "a formula is as fast for any number"


@pytest.mark.parametrize("name", ["default", "latched", "any", "paper", "budget"])
def test_requests_in_progress_are_counted(name: str) -> None:
    """Rounds that wait for an earlier request count as soon as that is decided: none opens sooner."""
    router = started(name)
    tickets = [router.arrive() for _ in range(12)]
    for ticket in tickets[1:]:
        router.observe(router.decide(0.5, ticket=ticket), 0.0)
    needed = clean_rounds_needed(router)
    assert needed is not None
    router.observe(router.decide(0.5, ticket=tickets[0]), 0.0)
    further = 1
    while router.threshold == 0.0:
        router.observe(router.decide(0.5, ticket=router.arrive()), 0.0)
        further += 1
    assert needed <= further <= needed + 1


def test_a_hung_draft_is_counted() -> None:
    """Its charge is refunded when it is decided after all, which may open a threshold at once."""
    router = started("default")
    hung = router.arrive()
    router.overdue(hung)
    while clean_rounds_needed(router):
        router.observe(router.decide(0.5, ticket=router.arrive()), 0.0)
    assert router.threshold == 0.0
    router.observe(router.decide(0.5, ticket=hung), 0.0)
    assert router.threshold > 0.0


def test_shares_that_went_back_to_the_first_score_count() -> None:
    """Gamblers that were added later bet too, and the score that was not learned does not."""
    router = learner(learn=replace(LEARN, least_gain=1.0, least_losses=3.0))
    nothing = (None, None)
    send(router, [Draft(0.0, nothing, float(number % 2)) for number in range(70)])
    assert [score.share for score in router.scores()] == pytest.approx([0.9, 0.0])
    overdue, early = router.arrive(), router.arrive()
    waiting = [router.decide(0.0, ticket=early, features=nothing), router.decide(0.0, features=nothing)]
    router.overdue(overdue)
    needed = clean_rounds_needed(router)
    for decision in waiting:
        router.observe(decision, 0.0)
    router.withdraw(overdue)
    assert clean_rounds_needed(router) == needed
    curve = wealth_curve(router)
    assert curve is not None
    assert curve["log_wealth"] == pytest.approx([router.log_wealth(threshold) for threshold in curve["threshold"]])
    for _ in range(needed or 0):
        assert router.threshold == 0.0
        router.observe(router.decide(0.0, features=nothing), 0.0)
    assert router.threshold > 0.0
