"""Audits placed where they are cheap keep the promise; rates that know the draft's own loss do not."""

import random

import pytest

from bpac.routing.exploration.gain_schedules import WhileItPays
from bpac.routing.router import Router
from tests.promise.test_promise import explained, more_than, most_explained

pytestmark = pytest.mark.promise

EPSILON, ALPHA, STREAMS, STEPS = 0.1, 0.1, 100, 1200
# Thresholds above this are unsafe: of the drafts below 0.5 one in fifty loses, of the others two in five.
EASY, SAFE = 0.5, 0.5 + (EPSILON / 0.95 - 0.01) / 0.4


def loses(uncertainty: float, dice: random.Random) -> float:
    """The loss of a draft."""
    return float(dice.random() < (0.02 if uncertainty < EASY else 0.4))


def ever_unsafe(seed: int, *, knows_loss: bool) -> bool:
    """Whether an unsafe threshold was ever in force, in a stream with cheap hours and a busy expert."""
    router = Router(EPSILON, ALPHA, exploration=WhileItPays(every=16), seed=seed)
    dice, unsafe, calls = random.Random(seed), False, 0
    for step in range(STEPS):
        uncertainty = dice.random()
        loss = loses(uncertainty, dice)
        # A day has 200 rounds. The expert is busy after several calls in a row: that tells of the past only.
        busy = bool(loss) if knows_loss else calls >= 3
        router.expect(audit_price=0.25 if step % 200 < 60 else 1.0, busy=busy)
        decision = router.decide(uncertainty, ticket=router.arrive())
        unsafe = unsafe or decision.threshold > SAFE
        calls = calls + 1 if decision.call_expert else 0
        if decision.call_expert:
            router.observe(decision, loss)
    return unsafe


def test_rates_that_follow_price_and_load_keep_the_promise() -> None:
    """Unsafe thresholds are in force in no more streams than chance explains."""
    assert explained((ever_unsafe(seed, knows_loss=False) for seed in range(STREAMS)), STREAMS, ALPHA)


def test_rates_that_know_the_loss_of_the_draft_break_it() -> None:
    """Control: audits are rare exactly where drafts lose, so that the wins of the other rounds are counted boldly."""
    broken = (ever_unsafe(seed, knows_loss=True) for seed in range(STREAMS))
    assert more_than(2 * most_explained(STREAMS, ALPHA), broken)
