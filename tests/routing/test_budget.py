import math
import random

import pytest

from bpac import Router
from bpac.betting.bounds.certificate import ServedLoss
from bpac.betting.payoff import Terms
from bpac.routing.audit.audit import audit_journal
from bpac.routing.bettors import BudgetBettor
from bpac.routing.coins import ListedCoins, SeededCoins
from bpac.routing.decision import Decision
from bpac.routing.journal.entries import Entry
from bpac.routing.journal.entry_lines import entry_to_json
from bpac.routing.journal.rebuild import follow
from bpac.routing.policies import Budget
from bpac.routing.recorded_terms import DecisionRules, decide_on_terms, draft_scores
from bpac.routing.rule import decide_query
from tests.routing.streams import STREAMS, drifting, stream
from tests.transcriptions import Row, rounded_down

EPSILON, ALPHA, RATE = 0.12, 0.1, 0.2


def transcribed_threshold(audits: list[tuple[float, float, float]], rounds: int, bound: float, first: int) -> float:
    """Section 7: the largest u with ``(ΣZ(u) + κ/2)/t ≤ ε + 2·slack`` if ``bound/(t + 1) ≤ ε``, else 0."""
    kept_share = 1.0 - RATE
    if rounds < first or bound / (rounds + 1) > EPSILON:
        return 0.0
    slack = (EPSILON * rounds - bound) / rounds
    candidates = sorted({rounded_down(score) for score, _, _ in audits} | {1.0}, reverse=True)
    for threshold in candidates:
        total = sum(
            kept_share * loss / propensity for score, propensity, loss in audits if rounded_down(score) < threshold
        )
        if (total + kept_share / 2.0) / rounds <= EPSILON + 2.0 * slack:
            return threshold
    return 0.0


def play(rows: list[Row], first: int) -> tuple[list[float], list[float]]:
    """Run the budget beside its transcription; return the thresholds and the actual averages."""
    policy = Budget(first=first)
    router = Router(EPSILON, ALPHA, policy, coins=ListedCoins([row.coin for row in rows]))
    served = ServedLoss(Terms(EPSILON, RATE), ALPHA)
    audits: list[tuple[float, float, float]] = []
    thresholds, averages, total = [], [], 0.0
    for row in rows:
        decision = router.decide(row.uncertainty)
        if decision.call_expert:
            router.observe(decision, row.loss)
            served.resolve(decision, row.loss)
            audits.append((row.uncertainty, decision.propensity, row.loss))
        else:
            total += row.loss
        expected = transcribed_threshold(audits, decision.step, served.upper(), first)
        assert router.threshold == pytest.approx(expected, abs=1e-9)
        thresholds.append(router.threshold)
        averages.append(total / decision.step)
    return thresholds, averages


@pytest.mark.parametrize("kind", STREAMS)
def test_the_budget_is_that_of_section_7(kind: str) -> None:
    """Limit and threshold agree with a plain transcription after every round."""
    thresholds, _ = play(stream(kind, 350), first=100)
    assert max(thresholds[:99]) == 0.0, "no draft is kept in the first hundred rounds"
    assert max(thresholds) > 0.3, "the stream must open the threshold"


def test_the_budget_closes_when_it_is_spent() -> None:
    """When an easy stream turns, keeping drafts stops before the average served can pass ε, and resumes later."""
    rows = drifting(300, turn=150)
    thresholds, averages = play(rows, first=50)
    assert max(averages) <= EPSILON
    assert thresholds[140] > 0.5
    assert 0.0 in thresholds[150:]


def test_owed_audits_use_up_budget() -> None:
    """Audits without an outcome count as loss 1 before the next decision, in the limit and in the threshold."""
    router = Router(0.3, 0.1, Budget(first=5), seed=3)
    while router.threshold < 1.0:
        router.observe(router.decide(0.5), 0.0)
    waiting = []
    while router.threshold > 0.0:
        decision = router.decide(0.5)
        if decision.call_expert:
            waiting.append(decision)
    for decision in waiting:
        router.observe(decision, 0.0)
    assert router.threshold == 1.0


def test_a_draft_served_for_a_failed_expert_uses_up_budget_at_once() -> None:
    """Answers that no coin covers count in the very next decision: the limit is on the actual loss."""
    router = Router(0.05, 0.1, Budget(first=5), seed=3)
    while router.threshold < 1.0:
        router.observe(router.decide(0.5), 0.0)
    served = ServedLoss(Terms(0.05, RATE), ALPHA)
    instead = 0
    # Certain audits change the bound by no more than the draft that is served in their place.
    while served.upper() + instead <= 0.05 * (router.step + 1):
        decision = router.decide(1.0)
        assert decision.propensity == 1.0
        router.forfeit(decision, "expert failed", draft_served=True)
        instead += 1
    assert router.threshold == 0.0


def test_the_limit_is_the_certificates_own_bound() -> None:
    """With nothing seen to lose, drafts are first kept when ``log(…)/η`` is at most ε of the rounds to come."""
    router = Router(EPSILON, ALPHA, Budget(first=1), seed=3)
    rates = [share * -math.log(1.0 - RATE) for share in (0.1, 0.3, 0.6, 0.9)]
    while router.threshold == 0.0:
        router.observe(router.decide(0.5), 0.0)

    def mean(served: float) -> float:
        return sum(math.exp(rate * served) for rate in rates) / 4.0

    assert mean(EPSILON * (router.step + 1)) >= 1.0 / ALPHA > mean(EPSILON * router.step)


def test_audits_to_come_move_the_bound_as_they_do_when_they_are_made() -> None:
    """The room after some audits without an outcome is that of a router that has made them at the least rate."""
    router = Router(0.1, 0.1, "budget", seed=1)
    for _ in range(110):
        router.observe(router.decide(0.5), 0.0)
    route, bettor = router._route, router._route.bettor
    assert isinstance(bettor, BudgetBettor)
    before = [bettor.needs(audits) for audits in range(4)]
    assert before[0] + 1.0 < before[1] < before[2] < before[3]
    assert bettor.has_room == (before[0] <= 0.1 * 111)
    made = []
    for _ in range(4):
        made.append(bettor.needs(0))
        decision = decide_query(router.step + 1, 0.0, 0.5, 0.2, 0.0, False, True)
        follow(route, [decision])
        route.charge()
    assert made == before
    assert ServedLoss(Terms(0.1, 0.0), 0.1).upper_after(1, 0.2) == math.inf


def test_audits_accept_thresholds_of_the_arrival_while_there_is_room() -> None:
    """Several gateways decide on what was in force when a query arrived: allowed with room, or with no threshold."""
    entries: list[Entry] = []
    router = Router(0.2, 0.1, Budget(first=20), coins=SeededCoins(3), journal=entries.append)
    rules, dice = DecisionRules.of(router.settings), random.Random(3)
    bettor = router._route.bettor
    assert isinstance(bettor, BudgetBettor)

    def play(loss: float) -> None:
        decision = router.decide(dice.random(), ticket=router.arrive())
        if decision.call_expert:
            router.observe(decision, loss if decision.propensity < 1.0 else float(decision.uncertainty > 0.5))

    def differences(*decisions: Decision) -> list[str]:
        lines = [entry_to_json(entry) + "\n" for entry in [*entries, *decisions]]
        return [one.what for one in audit_journal(lines).differences]

    while not router.threshold:
        play(0.0)
    first, second = router.arrive(), router.arrive()
    while router.threshold == first.threshold or not bettor.has_room:
        play(0.0)
    scores, step = draft_scores(rules, 0.01, 0.0), router.step
    old = decide_on_terms(rules, first, scores, step + 1, 0.99)
    none = decide_on_terms(rules, second, scores, step + 2, 0.99, stale=True)
    assert old.threshold == first.threshold > 0.0 == none.threshold
    assert differences(old, none) == []
    other = decide_on_terms(rules, first._replace(threshold=0.987), scores, step + 1, 0.99)
    assert differences(other) == [f"threshold of step {step + 1}"]
    while bettor.has_room:
        play(1.0)
    step = router.step
    old = decide_on_terms(rules, first, scores, step + 1, 0.99)
    assert differences(old)[0] == f"threshold of step {step + 1}"
