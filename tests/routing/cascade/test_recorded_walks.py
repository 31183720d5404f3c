"""Decisions of a cascade on recorded terms are those of its router, to the bit."""

import json
import random

import pytest

from bpac.betting.drift.alarm import AlarmSettings
from bpac.routing.cascade.recorded_walks import RecordedWalk, recorded_walk, walk_on_terms
from bpac.routing.cascade.router import CascadeRouter
from bpac.routing.cascade.rules import JoiningRule, rule_from_json
from bpac.routing.coins import SeededCoins
from bpac.routing.recorded_terms import DecisionRules, decide_on_terms
from tests.routing.cascade.gateways import Question, policy


@pytest.mark.parametrize("explore", ["serve", "shadow"])
def test_decisions_on_recorded_walks_are_those_of_the_router(explore: str) -> None:
    """Many queries under way, models that fail, rules that join, an epoch that ends: decisions are equal to the bit."""
    router = CascadeRouter(0.25, policy(drift=AlarmSettings(reset_at=50.0)), coins=SeededCoins(4), explore=explore)  # type: ignore[arg-type]
    rules, coins, dice = DecisionRules.of(router.settings), SeededCoins(4), random.Random(4)
    assert rules.cascade is not None
    under_way, seen = [], set[object]()
    for number in range(1100):
        ticket = router.arrive()
        # A replica knows rules as they are published.
        joined: list[JoiningRule] = [
            rule_from_json(json.loads(json.dumps(rule.to_json()))) for rule in router.bettor.joined_rules
        ]
        under_way.append((Question(dice, failing=0.05, hard=1.0 if number > 500 else 0.0), ticket, joined))
        while under_way and dice.random() < 0.6:
            question, ticket, joined = under_way.pop(dice.randrange(len(under_way)))
            stale = ticket.epoch != router.epoch
            walk = walk_on_terms(rules.cascade, ticket, joined)
            question.ask(walk)
            recorded = recorded_walk(rules.cascade, walk, joined)
            assert RecordedWalk(*recorded) == recorded
            if stale:  # the router has another walk after an alarm: nothing is accepted on it either
                step = router.step + 1
                late = decide_on_terms(rules, ticket, recorded, step, coins.draws(step)[-1], stale=True)
                assert (late.call_expert, late.propensity, late.uncertainties) == (True, 1.0, ())
                assert late.cascade is not None
                assert (late.cascade.stage, late.cascade.full) == (3, False)
                router.withdraw(ticket)
                seen.add("stale")
                continue
            own = router.walk(ticket)
            question.ask(own)
            expected = router.decide(own, ticket=ticket)
            draw = coins.draws(expected.step)[-1]
            decided = decide_on_terms(rules, ticket, recorded, expected.step, draw)
            assert decided == expected
            part = decided.cascade
            assert part is not None
            seen |= {("stage", part.stage), ("full", part.full), ("rules", len(decided.uncertainties))}
            if decided.call_expert:
                question.observe(router, decided)
    assert {"stale", ("full", True), ("full", False), ("rules", 2), ("rules", 3), ("rules", 4)} <= seen
    assert {("stage", 1), ("stage", 2)} & seen
