"""Audits whose loss can no longer change anything: giving them up costs nothing and never breaks the promise."""

import math

import numpy as np
import pytest

from bpac import Decision, Router
from bpac.replay.tables.builtin import builtin_table
from tests.routing.test_epochs import opened, ring

EPSILON, ALPHA = 0.1, 0.1


def test_at_the_beginning_everything_is_worth_grading() -> None:
    """Except a draft without a score: no threshold would accept it."""
    router = Router(EPSILON, ALPHA, seed=1)
    decisions = [router.decide(score) for score in (0.0, 0.5, math.nextafter(1.0, 0.0), 1.0)]
    assert [router.worth_grading(decision) for decision in decisions] == [True, True, True, False]


def test_owed_outcomes_are_not_taken_for_losses() -> None:
    """Many requests in flight must not look like many losses: what is given up for them would stay given up."""
    router = Router(EPSILON, ALPHA, seed=1)
    waiting = [router.decide(0.5) for _ in range(200)]
    assert router.log_wealth(0.9) < math.log(ALPHA)
    assert router.worth_grading(router.decide(0.5))
    for decision in waiting:
        router.observe(decision, 1.0)
    assert not router.worth_grading(router.decide(0.5))


def test_rounds_behind_an_open_ticket_are_not_charged_yet() -> None:
    """What the bettor has not seen has no charge to take out: such rounds leave the prospects as they are."""
    router = Router(EPSILON, ALPHA, seed=1)
    router.arrive()
    behind = [router.decide(0.3, ticket=router.arrive()), router.decide(0.7, ticket=router.arrive())]
    assert [router.worth_grading(decision) for decision in behind] == [True, True]


def test_charges_of_an_earlier_epoch_are_not_taken_out_of_this_one() -> None:
    """Charges of an earlier epoch never lowered the wealth of this one."""
    router = opened(alpha_epochs="each")
    while len(router.owed) < 50:
        router.decide(0.2)
    ring(router)
    while router.worth_grading(decision := router.decide(0.5)):
        router.observe(decision, 1.0)
    fresh = Router(EPSILON, ALPHA, alpha_epochs="each", seed=1)
    while fresh.worth_grading(decision := fresh.decide(0.5)):
        fresh.observe(decision, 1.0)
    assert router.owed[0].epoch == 1
    assert router.log_wealth(0.9) == fresh.log_wealth(0.9)


def test_an_audit_of_an_accepted_draft_is_always_worth_grading() -> None:
    """It stands for drafts that were kept: counting it as a loss would lower the threshold."""
    router = opened()
    while not (decision := router.decide(0.5)).call_expert:
        pass
    assert decision.propensity < 1.0
    assert router.worth_grading(decision)


@pytest.mark.parametrize(("policy", "learns"), [("always", False), ("paper", True), ("budget", True), ("naive", True)])
def test_fixed_thresholds_need_no_grades_and_other_policies_need_all(policy: str, learns: bool) -> None:
    """A fixed threshold learns nothing; a bettor without a wealth for each threshold keeps all."""
    router = Router(EPSILON, ALPHA, policy, seed=1)
    for _ in range(100):
        router.observe(router.decide(0.5), 1.0)
    assert router.worth_grading(router.decide(0.9)) == learns


@pytest.mark.no_cover
@pytest.mark.parametrize("name", ["mmlu-pro-like", "bbh-like"])
def test_skipping_hopeless_grades_costs_no_expert_calls(name: str) -> None:
    """Many drafts that the expert takes over need not be finished; in the median stream, no further call follows.

    In some streams the unknown losses make exploration go on for longer, which costs calls, never the promise.
    """

    def play(gives_up: bool, seed: int) -> tuple[int, int, int]:
        router = Router(0.05, ALPHA, seed=seed)
        table = builtin_table(name, seed=seed, rows=8000)
        calls = taken_over = given_up = 0
        for score, loss in zip(table.uncertainty.tolist(), table.loss.tolist(), strict=True):
            decision: Decision = router.decide(score)
            if not decision.call_expert:
                continue
            calls += 1
            taken_over += decision.propensity == 1.0
            if gives_up and not router.worth_grading(decision):
                given_up += 1
                router.forfeit(decision)
            else:
                router.observe(decision, loss)
        return calls, taken_over, given_up

    more = []
    for seed in range(5):
        calls, taken_over, given_up = play(gives_up=True, seed=seed)
        finished, _, _ = play(gives_up=False, seed=seed)
        assert given_up > 0.3 * taken_over
        more.append(calls / finished)
    assert np.median(more) == pytest.approx(1.0, abs=0.01)
