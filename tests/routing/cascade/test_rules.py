"""Stopping rules, how they are fitted, and what a cascade costs with them."""

import json
import random

import numpy as np
import pytest

from bpac.betting.payoff import Terms
from bpac.errors import InputError
from bpac.routing.cascade.fitting import fit_rule, fit_stages, stage_sets
from bpac.routing.cascade.full_audits import MOST_ROUNDS, Estimates, FullAudits
from bpac.routing.cascade.rounds import StageAnswer, StageOutcomes
from bpac.routing.cascade.rules import FittedRule, StageModel, UncertaintyRule, logistic, rule_from_json
from tests.routing.cascade.gateways import PRICES, Question

TERMS = Terms(0.1, 0.05)


def sample(rounds: int, *, failing: float = 0.0, seed: int = 1) -> FullAudits:
    """Rounds in which all models were asked."""
    dice = random.Random(seed)
    found = FullAudits()
    for _ in range(rounds):
        question = Question(dice, failing=failing)
        found.add(StageOutcomes(tuple(question.answers), tuple(question.losses)), dice.choice([1.0, 4.0]))
    return found


@pytest.mark.parametrize("failing", [0.0, 0.2])
def test_a_fitted_rule_survives_json_and_values_lie_in_the_unit_interval(failing: float) -> None:
    """Written and read again, a rule gives the same values; a model that failed has the value 1."""
    rounds = sample(300, failing=failing)
    rule = fit_stages(rounds, (1, 2), PRICES)
    assert rule is not None
    again = rule_from_json(json.loads(json.dumps(rule.to_json())))
    assert again == rule
    for outcome in rounds.rounds:
        for index in (0, 1):
            value = rule.value(index, outcome.answers)
            assert 0.0 <= value <= 1.0
            assert (value == 1.0) or outcome.answers[index]
            assert again.value(index, outcome.answers) == value


def test_an_answer_that_looks_worse_has_a_higher_value() -> None:
    """Values rise with the uncertainty where losses do, and weigh what going on costs."""
    rounds = sample(600)
    rule = fit_stages(rounds, (1, 2), PRICES)
    assert rule is not None
    low, middle, high = (rule.value(0, [(u, 2.5), ()]) for u in (0.1, 0.5, 0.9))
    assert low < middle < high
    expensive = fit_stages(rounds, (1, 2), (1.0, 15.0, 20.0))
    assert expensive is not None
    # Where the second model costs nearly as much as the reference, going on to it is worth less, so stopping at the
    # first one pays at a lower price of loss.
    assert expensive.value(0, [(0.5, 2.5), ()]) < middle


def test_stage_sets_of_long_cascades_are_runs() -> None:
    """With few models every set is tried, with many only runs of neighbours."""
    assert len(stage_sets(4)) == 15
    assert stage_sets(5)[:2] == [(1,), (1, 2)]
    assert len(stage_sets(5)) == 15


def test_nothing_is_fitted_where_no_model_answered() -> None:
    """A stage that always failed is left out; if all did, only their uncertainty, which is 1, is left."""
    rounds = FullAudits()
    for _ in range(64):
        rounds.add(StageOutcomes((None, (0.2, 1.0)), (None, 0.0)), 1.0)
    assert fit_stages(rounds, (1, 2), PRICES) is None
    rule = fit_rule(rounds, PRICES, TERMS)
    assert rule is not None
    assert 2 in rule.stages


def test_all_rounds_alike_give_one_knot() -> None:
    """Predictions that are all the same are one group, and the value of another answer is still a number."""
    rounds = FullAudits()
    for number in range(200):
        rounds.add(StageOutcomes(((0.2, 1.0), (0.1, 1.0)), (float(number % 9 == 0), 0.0)), 1.0)
    rule = fit_stages(rounds, (1, 2), PRICES)
    assert rule is not None
    assert len(rule.models[0].knots) == 1
    assert 0.0 <= rule.value(0, [(0.9, 5.0), ()]) <= 1.0


def test_a_loss_that_no_price_of_going_on_reaches_has_the_value_one() -> None:
    """Where even a free reference is worth less than stopping costs, the answer is never accepted."""
    model = StageModel((0.0, 0.0, 0.0), knots=(0.2,), worth=((0.0, 0.4),))
    rule = FittedRule((1,), (model,), (0.0, 1.0), ((0.5,),))
    assert rule.value(0, [(0.3,)]) == 1.0
    with pytest.raises(InputError, match="do not fit together"):
        FittedRule((1, 2), (model,), (0.0, 1.0), ((0.5,),)).check()


def test_the_logistic_function_does_not_overflow() -> None:
    """Very large numbers of either sign give 1 and 0."""
    assert logistic(1e4) == 1.0
    assert logistic(-1e4) == 0.0


def test_estimates_give_the_cost_of_a_threshold() -> None:
    """Costs are those of the models asked, with the audits of accepted answers."""
    rounds = FullAudits()
    outcomes: list[tuple[StageAnswer, StageAnswer, float, float]] = [
        ((0.1,), (0.5,), 0.0, 0.0),
        ((0.6,), (0.2,), 1.0, 0.0),
        ((0.8,), (0.9,), 1.0, 1.0),
    ]
    for first, second, loss, other in outcomes:
        rounds.add(StageOutcomes((first, second), (loss, other)), 1.0)
    estimates = Estimates(UncertaintyRule((1, 2)), PRICES, floor=0.05)
    estimates.follow(rounds)
    weights = np.ones(3)
    cost, accepted, audit = estimates.cost(weights, 0.3)
    assert cost == pytest.approx((1 + 0.05 * 24 + 5 + 0.05 * 20 + 25) / 3)
    assert accepted == pytest.approx(2 / 3)
    assert audit == pytest.approx((24 + 20) / 3)
    assert estimates.looks_safe(weights, 0.0) == 0.6
    assert estimates.looks_safe(weights, 0.4) == 0.8
    assert estimates.looks_safe(weights, 1.0) == 1.0
    assert Estimates(UncertaintyRule((1,)), PRICES, 0.05).looks_safe(weights, 0.0) == 1.0


def test_a_long_sample_drops_its_older_half() -> None:
    """Memory is bounded, and estimates follow what was dropped."""
    rounds = sample(MOST_ROUNDS - 1)
    estimates = Estimates(UncertaintyRule((2,)), PRICES, 0.05)
    estimates.follow(rounds)
    for outcome in sample(20, seed=2).rounds:
        rounds.add(outcome, 1.0)
    assert len(rounds) == MOST_ROUNDS // 2 + 19
    assert rounds.seen == MOST_ROUNDS + 19
    estimates.follow(rounds)
    fresh = Estimates(UncertaintyRule((2,)), PRICES, 0.05)
    fresh.follow(rounds)
    weights = np.array(rounds.weights)
    assert estimates.cost(weights, 0.4) == fresh.cost(weights, 0.4)


def test_answers_with_the_same_uncertainty_are_spread_by_their_length() -> None:
    """Shorter answers have lower values; without a length, or without a width, the value is the uncertainty."""
    rule = UncertaintyRule((1,), width=0.25)
    short, long = (rule.value(0, [(0.4, log_length)]) for log_length in (3.0, 8.0))
    assert 0.3 < short < long < 0.4
    assert rule.value(0, [(0.4, 1e308)]) == rule.value(0, [(0.4,)]) == 0.4
    assert (rule.value(0, [(1.0, 3.0)]), rule.value(0, [None])) == (1.0, 1.0)
    assert rule_from_json(rule.to_json()) == rule
    assert rule_from_json({"stages": [1]}) == UncertaintyRule((1,))
    with pytest.raises(InputError, match="width"):
        rule_from_json({"stages": [1], "width": 2.0})
