import json
import math
from typing import Any

import pytest

from bpac import Decision, Router
from bpac.routing.journal.entries import Entry
from bpac.routing.policies import Portfolio
from bpac.routing.policies.stakes import DEFAULT_STAKES
from tests.transcriptions import PortfolioTranscription

EPSILON, ALPHA = 0.1, 0.1
POINTS = (0.01, 0.3, 0.5, 0.51, 1.0)


def opened(**settings: Any) -> Router:
    """A router whose threshold is 1 after an easy beginning."""
    router = Router(EPSILON, ALPHA, **{"seed": 5, **settings})
    while router.threshold < 1.0:
        router.observe(router.decide(0.5), 0.0)
    return router


def audit(router: Router) -> Decision:
    """Decide until the expert is called."""
    while not (decision := router.decide(0.5)).call_expert:
        pass
    return decision


def ring(router: Router) -> None:
    """Lose every audit until the alarm starts a new epoch."""
    epoch = router.epoch
    while router.epoch == epoch:
        router.observe(audit(router), 1.0)


def levels(router: Router) -> tuple[float, float]:
    """The levels of the alarm and of the doubt."""
    summary = router.summary()
    assert summary.alarm is not None
    assert summary.doubt is not None
    return summary.alarm, summary.doubt


def wealth(router: Router) -> list[float]:
    """Log-wealth at some thresholds; unequal shares of 1 do not sum to it exactly."""
    return [round(router.log_wealth(point), 9) for point in POINTS]


def test_a_reset_forgets_the_wealth() -> None:
    """After the alarm the threshold is 0, the wealth is 1 everywhere, and the warm-up begins again."""
    router = opened()
    while router.decide(0.5).propensity != 0.05:
        pass
    before = router.step
    ring(router)
    assert before < router.step < before + 2000
    assert (router.epoch, router.threshold, wealth(router)) == (2, 0.0, [0.0] * len(POINTS))
    assert router.summary().alarm == 1.0
    while router.threshold < 1.0:
        router.observe(router.decide(0.5), 0.0)
    assert router.decide(0.5).propensity == 0.9


def test_the_alarm_raises_the_exploration_rate_before_it_resets() -> None:
    """At level 5 exploration rises to 0.5 for the coming rounds, as the decision records."""
    router = opened()
    while router.decide(0.5).propensity != 0.05:
        pass
    router.observe(audit(router), 1.0)
    while levels(router)[0] < 5.0:
        router.observe(audit(router), 1.0)
    decision = router.decide(0.5)
    assert (decision.propensity, decision.least_propensity, router.epoch) == (0.5, 0.5, 1)


@pytest.mark.parametrize("outcome", ["lost", "won", "given up", "given up and won"])
def test_a_late_outcome_leaves_the_new_epoch_alone(outcome: str) -> None:
    """A round belongs to the epoch it was decided in: later it counts for what was served and for nothing else."""
    router = opened()
    late = [audit(router) for _ in range(3)]
    ring(router)
    assert {decision.epoch for decision in late} == {1}
    router.observe(router.decide(0.5), 0.0)
    before, level, served = wealth(router), router.summary().alarm, router.snapshot()["state"]["served"]
    for decision in late:
        if outcome.startswith("given up"):
            router.forfeit(decision)
        if outcome != "given up":
            router.observe(decision, float(outcome == "lost"))
    assert (wealth(router), router.summary().alarm, router.threshold) == (before, level, 0.0)
    # A round that was charged loss 1 and has loss 1 leaves the upper bound as it was.
    assert (router.snapshot()["state"]["served"]["upper"] == served["upper"]) == (not outcome.endswith("won"))


def test_an_audit_that_is_open_during_a_reset_is_charged_to_its_own_epoch() -> None:
    """The latest audit, still open while an earlier one rings the alarm, costs the new epoch nothing."""
    router = opened()
    waiting = [audit(router) for _ in range(60)]
    latest = waiting.pop()
    for decision in waiting:
        if router.epoch == 1:
            router.observe(decision, 1.0)
    assert router.epoch == 2
    assert wealth(router) == [0.0] * len(POINTS)
    router.observe(latest, 1.0)
    assert wealth(router) == [0.0] * len(POINTS)


def test_forfeits_do_not_ring_the_alarm() -> None:
    """An outage is not drift: nothing is forgotten, but every draft is audited until verdicts come again."""
    router = opened()
    threshold = router.threshold
    for _ in range(100):
        router.forfeit(audit(router), "expert failed")
    assert (router.epoch, router.threshold) == (1, threshold)
    assert levels(router)[0] == pytest.approx(1.0, abs=0.5)
    assert router.summary().forfeit_share > 0.5
    assert router.decide(0.5).propensity == 1.0
    for _ in range(1000):
        router.observe(audit(router), 0.0)
    assert router.decide(0.5).propensity < 0.5
    assert router.summary().doubt == 1.0


def test_a_router_in_doubt_is_rebuilt_to_the_bit() -> None:
    """A snapshot taken while every draft is audited for doubt gives the same router back, and the same rates."""
    router = opened()
    for _ in range(100):
        router.forfeit(audit(router), "expert failed")
    copy = Router.rebuild([], snapshot=json.loads(json.dumps(router.snapshot())), seed=5)
    assert copy.snapshot() == router.snapshot()
    assert copy.decide(0.5).propensity == router.decide(0.5).propensity == 1.0


def test_a_drift_behind_forfeits_is_noticed() -> None:
    """If the verdicts of losing drafts never come, soon no draft is served without an audit."""
    router = opened()
    served = 0
    for _ in range(2000):
        decision = router.decide(0.5)
        served += decision.serve_draft
        if decision.call_expert:
            router.forfeit(decision, "grader failed")
    assert router.epoch == 1
    assert served < 200


@pytest.mark.parametrize("explore", ["serve", "shadow"])
def test_in_doubt_nothing_is_served_without_a_verdict(explore: Any) -> None:
    """While every draft is audited for doubt, callers get the expert's answer, with shadow audits too."""
    router = opened(explore=explore)
    for _ in range(100):
        router.forfeit(audit(router), "expert failed")
    decision = router.decide(0.5)
    assert (decision.propensity, decision.call_expert, decision.serve_draft) == (1.0, True, False)


def test_a_loss_reported_after_a_forfeit_raises_the_alarm() -> None:
    """The alarm counts a loss when it is known, also after the round was given up; the doubt has counted it before."""
    router = opened()
    decision = audit(router)
    router.forfeit(decision)
    quiet, doubt = levels(router)
    router.observe(decision, 1.0)
    assert levels(router)[0] > quiet
    assert doubt > quiet
    assert levels(router)[1] <= doubt


@pytest.mark.parametrize("alpha_epochs", ["each", "all"])
def test_epochs_have_level_alpha_each_or_together(alpha_epochs: Any) -> None:
    """Each epoch has level α, or all together: then the first has 0.9α and the others share the rest."""
    router = Router(EPSILON, ALPHA, alpha_epochs=alpha_epochs, seed=5)
    for epoch in (1, 2, 3):
        shared = 0.9 * ALPHA if epoch == 1 else 0.1 * ALPHA * 6 / (math.pi * (epoch - 1)) ** 2
        level = ALPHA if alpha_epochs == "each" else shared
        expected = PortfolioTranscription(EPSILON, level, 0.95, [0.5], latched=True, **DEFAULT_STAKES._asdict())
        while expected.threshold == 0.0:
            assert (router.epoch, router.threshold) == (epoch, 0.0)
            expected.settle(0.5, 1.0, 1.0, 0.0)
            router.observe(router.decide(0.5), 0.0)
        assert router.threshold == 1.0
        ring(router)


def test_a_later_epoch_is_rebuilt_and_resumed() -> None:
    """Journal and snapshot bring back a router in its second epoch, old audits included."""
    entries: list[Entry] = []
    router = opened(journal=entries.append)
    old = audit(router)
    ring(router)
    for _ in range(20):
        audit(router)
    snapshot = json.loads(json.dumps(router.snapshot()))
    copies = [Router.rebuild(entries), Router.rebuild([], snapshot=snapshot)]
    router.observe(old, 0.0)
    for copy in copies:
        copy.observe(old, 0.0)
        assert copy.snapshot()["state"] == router.snapshot()["state"]
        assert (copy.epoch, copy.decide(1.0).epoch) == (2, 2)


@pytest.mark.parametrize("memory", ["latched", "revocable"])
def test_without_the_alarm_there_is_one_epoch(memory: Any) -> None:
    """A latched threshold stays through any losses; a revocable one falls with the wealth."""
    router = opened(policy=Portfolio(memory=memory))
    for _ in range(40):
        router.observe(audit(router), 1.0)
    assert router.epoch == 1
    assert router.summary().alarm is None
    assert router.threshold == 1.0 if memory == "latched" else router.threshold <= 0.5
