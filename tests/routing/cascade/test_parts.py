"""Parts of a cascade's router that streams seldom reach."""

import random

import pytest

from bpac import entry_from_json
from bpac.errors import JournalError
from bpac.routing.cascade.policy import Cascade
from bpac.routing.cascade.router import CascadeRouter
from bpac.routing.exploration.schedules import Constant
from bpac.routing.journal.entries import Entry, Fitted
from tests.routing.cascade.gateways import PRICES, Question, journalled, policy, serve


def test_any_schedule_can_be_used() -> None:
    """A constant rate is used as it is, in place of the one that follows what audits could save."""
    router = CascadeRouter(0.3, Cascade(prices=PRICES, features=1), exploration=Constant(0.25), seed=1)
    serve(router, 300, random.Random(1), tickets=False)
    assert router.threshold > 0.0
    walk = router.walk()
    assert walk.terms.rate == 0.25


def test_what_was_asked_is_counted_and_priced() -> None:
    """The cost is that of all calls, audits included."""
    router, _ = journalled()
    assert router.cost == 0.0
    serve(router, 200, random.Random(1), tickets=False, failing=0.0)
    asked = router.asked
    assert asked[3] == router.summary().expert_calls
    assert router.cost == pytest.approx(sum(asked[stage] * price for stage, price in enumerate(PRICES, 1)) / 200)
    assert router.bettor.rounds == 200


@pytest.mark.parametrize("large", [1e308, 1e200])
def test_numbers_that_are_too_large_to_fit_are_left_out_of_rules(large: float) -> None:
    """Then a rule decides by uncertainty, and the router is rebuilt to the same bits."""
    entries: list[Entry] = []
    router = CascadeRouter(0.3, policy(fit_at=(40,), fitted_shares=(0.5,)), seed=1, journal=entries.append)
    dice = random.Random(1)
    for number in range(200):
        question = Question(dice)
        question.answers = [(answer[0], large) if answer else None for answer in question.answers]
        walk = router.walk()
        question.ask(walk)
        decision = router.decide(walk)
        if decision.call_expert and number % 2:
            question.observe(router, decision)
    assert router.step == 200
    (fitted,) = [entry for entry in entries if isinstance(entry, Fitted)]
    assert list(fitted.rule) == ["stages"]
    assert CascadeRouter.rebuild(entries).snapshot() == router.snapshot()
    assert CascadeRouter.rebuild([], snapshot=router.snapshot()).snapshot() == router.snapshot()


def test_a_walk_without_a_ticket_that_an_alarm_overtook_goes_to_the_reference() -> None:
    """It counts as arriving now, in an epoch in which nothing is certified."""
    router, entries = journalled(fit_at=(), fitted_shares=())
    dice = random.Random(2)
    serve(router, 300, dice, tickets=False, failing=0.0)
    walk = router.walk()
    walk.answered(0.0, 1.0)
    assert walk.accepted
    serve(router, 700, dice, tickets=False, failing=0.0, hard_from=0)
    assert router.epoch > 1
    decision = router.decide(walk)
    assert decision.cascade is not None
    assert (decision.epoch, decision.propensity, decision.cascade.stage) == (router.epoch, 1.0, 3)
    assert CascadeRouter.rebuild(entries).snapshot() == router.snapshot()


@pytest.mark.parametrize("field", ['"cascade":[1]', '"cascade":[0,1,[[null]],true,1]', '"stages":3'])
def test_lines_that_are_no_rounds_of_a_cascade_are_refused(field: str) -> None:
    """A part that cannot be read is refused with the number of its line."""
    kind = "decided" if "cascade" in field else "resolved"
    rest = (
        '"uncertainty":0.1,"threshold":0.0,"propensity":1.0,"least_propensity":1.0,"call_expert":true,'
        '"serve_draft":false'
        if kind == "decided"
        else '"loss":0.0'
    )
    with pytest.raises(JournalError, match="line 5: "):
        entry_from_json(f'{{"entry":"{kind}","step":1,{rest},{field}}}', 5)
