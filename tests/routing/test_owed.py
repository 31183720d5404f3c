from typing import Any

import pytest

from bpac import Decision, Router
from bpac.errors import AlreadyResolved
from bpac.routing.exploration.schedules import Constant
from bpac.routing.journal.entries import Entry
from bpac.routing.policies import Paper, Portfolio
from tests.transcriptions import PaperTranscription, PortfolioTranscription

SCORES = (0.1, 0.5, 0.3, 0.7, 0.2, 0.6)


def started(policy: Any, entries: list[Entry] | None = None, **settings: Any) -> tuple[Router, list[Decision]]:
    """A router with six audits that are owed, and those."""
    write = None if entries is None else entries.append
    router = Router(0.2, 0.1, policy, exploration=Constant(0.2), seed=1, journal=write, **settings)
    return router, [router.decide(score) for score in SCORES]


def test_audits_are_owed_until_they_are_known() -> None:
    """What waits for its outcome is listed, oldest first, and counted in the summary."""
    router, decisions = started("portfolio")
    router.observe(decisions[2], 0.0)
    router.forfeit(decisions[4])
    assert router.owed == (decisions[0], decisions[1], decisions[3], decisions[5])
    assert router.summary().owed == 4


def test_what_is_owed_is_charged_as_loss_1() -> None:
    """Before an outcome is known the wealth is that of a loss of 1; afterwards that of the true loss (MATH 5)."""
    router, decisions = started(Portfolio(memory="revocable"))
    losses = [1.0] * 6
    for index in (3, 0, 5, 1, 4, 2, None):
        slow = PortfolioTranscription(0.2, 0.1, 0.8, SCORES)
        for decision, loss in zip(decisions, losses, strict=True):
            slow.settle(decision.uncertainty, 1.0, 1.0, loss)
        for threshold, expected in zip(slow.thresholds, slow.log_wealth, strict=True):
            assert router.log_wealth(float(threshold)) == pytest.approx(expected, abs=1e-9)
        if index is not None:
            losses[index] = 0.25 * (index % 3)
            router.observe(decisions[index], losses[index])


def test_the_paper_waits_for_the_oldest() -> None:
    """Rounds are settled in decision order: an owed one holds back those after it, kept drafts included."""
    router = Router(0.3, 0.4, Paper(), exploration=Constant(0.3), seed=2)
    while router.threshold == 0.0:
        router.observe(router.decide(0.4), 0.0)
    slow = PaperTranscription(0.3, 0.4, 0.7)
    for _ in range(router.step):
        slow.settle(0.4, 1.0, 0.3, 0.0)
    rounds = [router.decide(score) for score in (0.9, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.9)]
    audits = [decision for decision in rounds if decision.call_expert]
    assert 2 < len(audits) < len(rounds)
    before = router.threshold
    for decision in audits[:0:-1]:
        router.observe(decision, 0.0)
        assert router.threshold == before
        assert router.log_wealth(0.3) == pytest.approx(slow.log_wealth[300])
    router.observe(audits[0], 0.5)
    for decision in rounds:
        loss = 0.5 if decision is audits[0] else 0.0
        slow.settle(decision.uncertainty, decision.propensity, decision.least_propensity, loss)
    assert router.log_wealth(0.3) == pytest.approx(slow.log_wealth[300])
    assert router.threshold == pytest.approx(slow.threshold)


@pytest.mark.parametrize("policy", ["portfolio", "paper", "budget", "offline"])
def test_beyond_the_limit_the_oldest_is_given_up(policy: str) -> None:
    """With room for four, six audits crowd out the first two: counted, and settled as loss 1 like any forfeit."""
    entries: list[Entry] = []
    router, decisions = started(policy, entries, max_owed=4)
    assert router.owed == tuple(decisions[2:])
    assert router.summary().forfeits == {"crowded out": 2}
    roomy, same = started(policy, max_owed=100)
    for decision in same[:2]:
        roomy.forfeit(decision)
    for decision in decisions[2:]:
        router.observe(decision, 0.0)
        roomy.observe(decision, 0.0)
    assert router.snapshot()["state"]["game"] == roomy.snapshot()["state"]["game"]
    assert Router.rebuild(entries).snapshot() == router.snapshot()


def test_no_more_rounds_are_remembered_than_may_be_owed() -> None:
    """As many rounds that were given up as may be owed still take a loss; beyond that the oldest is closed for good."""
    router, decisions = started("portfolio", max_owed=6)
    for decision in decisions:
        router.forfeit(decision, "timeout")
    newest = router.decide(0.9)
    router.forfeit(newest, "timeout")
    with pytest.raises(AlreadyResolved):
        router.observe(decisions[0], 0.0)
    for decision in (*decisions[1:], newest):
        router.observe(decision, 0.0)
    assert router.owed == ()
    assert router.summary().forfeits == {"timeout": 7}


def test_crowding_out_makes_the_router_audit_everything() -> None:
    """A router whose outcomes never come gives them up one by one, forgets nothing, and soon serves no draft."""
    entries: list[Entry] = []
    router = Router(0.2, 0.1, seed=1, max_owed=5, journal=entries.append)
    while router.threshold < 1.0:
        router.observe(router.decide(0.5), 0.0)
    while router.decide(0.5).propensity < 1.0:
        pass
    assert (router.epoch, router.threshold) == (1, 1.0)
    assert router.summary().forfeits["crowded out"] > 5
    assert Router.rebuild(entries).snapshot() == router.snapshot()


@pytest.mark.parametrize("policy", ["portfolio", "paper"])
def test_reading_a_router_changes_nothing(policy: str) -> None:
    """A router that is read after every call ends like one that is never read, also where rounds are crowded out."""
    looked_at, left_alone = (Router(0.2, 0.1, policy, exploration=Constant(0.2), seed=1, max_owed=3) for _ in range(2))
    for router in (looked_at, left_alone):
        decisions = []
        for step, score in enumerate(SCORES * 4):
            decisions.append(router.decide(score))
            if router is looked_at:
                router.owed, router.threshold, router.summary(), router.snapshot()
            if step % 6 == 5 and decisions[-2].call_expert:
                router.observe(decisions[-2], 0.0)
            if step % 6 == 2 and decisions[-1].call_expert:
                router.observe(decisions[-1], 0.5)
    assert looked_at.snapshot() == left_alone.snapshot()


@pytest.mark.parametrize("order", [(0, 1), (1, 0)], ids=["in order", "latest first"])
def test_an_outcome_finds_the_latest_audit_charged(order: tuple[int, int]) -> None:
    """An earlier outcome that arrives while the latest audit is open finds it charged: its loss is always counted."""
    bettor = PortfolioTranscription(0.2, 0.1, 0.8, [0.5])
    needed = 0
    while bettor.threshold == 0.0:
        bettor.settle(0.5, 1.0, 1.0, 0.0)
        needed += 1
    router = Router(0.2, 0.1, Portfolio(memory="latched"), exploration=Constant(0.2), seed=1)
    for _ in range(needed - 2):
        router.observe(router.decide(0.5), 0.0)
    audits = [router.decide(0.5), router.decide(0.5)]
    for index in order:
        router.observe(audits[index], float(index))
    assert router.threshold == 0.5
