from functools import partial
from typing import Any

import pytest

from bpac import Router
from bpac.betting.bounds.fixed_sample import calibrate
from bpac.routing.exploration.gain_schedules import GainDriven
from bpac.routing.exploration.schedules import TwoStage
from bpac.routing.journal.entries import Entry
from bpac.routing.policies import Offline, Paper, Portfolio
from tests.routing.streams import stream
from tests.transcriptions import PaperTranscription, PortfolioTranscription

HISTORY = [(row.uncertainty, row.loss) for row in stream("graded", 300)]
EPSILON, ALPHA = 0.12, 0.1


def test_history_is_rounds_with_propensity_1() -> None:
    """The portfolio counts every row as a round in which the expert was called for certain (MATH 3)."""
    router = Router(EPSILON, ALPHA, Portfolio(memory="revocable"))
    router.warm_start(HISTORY)
    slow = PortfolioTranscription(EPSILON, ALPHA, 0.95, [score for score, _ in HISTORY])
    for score, loss in HISTORY:
        slow.settle(score, 1.0, 1.0, loss)
    assert router.threshold == pytest.approx(slow.threshold)
    assert router.threshold > 0.3, "the history must open the threshold"
    logs = [router.log_wealth(float(threshold)) for threshold in slow.thresholds]
    assert logs == pytest.approx(slow.log_wealth.tolist(), abs=1e-8)


@pytest.mark.parametrize("policy", ["portfolio", "paper", "hoeffding", "offline"])
def test_history_is_as_good_as_live_rounds(policy: str) -> None:
    """While the threshold is 0, live rounds and rows of history leave the bettor in the same state."""
    rows = HISTORY[:15]
    warm, live = Router(EPSILON, ALPHA, policy, seed=1), Router(EPSILON, ALPHA, policy, seed=1)
    warm.warm_start(rows)
    for score, loss in rows:
        decision = live.decide(score)
        assert decision.threshold == 0.0
        live.observe(decision, loss)
    bettors = [router.snapshot()["state"]["game"] for router in (warm, live)]
    if policy == "offline":  # which numbers the rows of history from 0 down
        bettors = [[row[1:] for row in bettor["losses"]] for bettor in bettors]
    assert bettors[0] == bettors[1]


def test_the_paper_bets_on_history_at_its_own_rates() -> None:
    """Algorithm 1 caps its bets by the schedule, over history as over live rounds."""
    router = Router(EPSILON, ALPHA, Paper(), exploration=TwoStage(0.6, 0.1, 100))
    router.warm_start(HISTORY)
    slow = PaperTranscription(EPSILON, ALPHA, 0.9)
    for row, (score, loss) in enumerate(HISTORY, start=1):
        slow.settle(score, 1.0, 0.6 if row <= 100 else 0.1, loss)
    assert router.threshold == pytest.approx(slow.threshold)
    for point in (0.1, 0.5, 0.9):
        assert router.log_wealth(point) == pytest.approx(slow.log_wealth[round(point * 1000)], abs=1e-9)


@pytest.mark.parametrize(("rows", "rate"), [(3, 0.6), (4, 0.6), (5, 0.1), (9, 0.1)])
def test_history_counts_towards_the_warm_up(rows: int, rate: float) -> None:
    """With five rounds of warm-up, the sixth round explores little, whether the five were history or live."""
    router = Router(EPSILON, ALPHA, Portfolio(), exploration=TwoStage(0.6, 0.1, 5), seed=1)
    router.warm_start([(0.5, 0.0)] * rows)
    while router.threshold == 0.0:
        router.warm_start([(0.5, 0.0)])
    assert router.decide(0.1).propensity == 0.1
    paper = Router(EPSILON, ALPHA, Paper(), exploration=TwoStage(0.6, 0.1, 5), seed=1)
    paper.warm_start([(0.5, 0.0)] * rows)
    assert paper.decide(0.1).least_propensity == rate


def test_history_does_not_count_as_served() -> None:
    """Rows are not steps: nothing was answered, called or served."""
    router = Router(EPSILON, ALPHA, seed=1)
    router.warm_start(HISTORY)
    certificate = router.certificate()
    assert (router.step, certificate.rounds, certificate.lower, certificate.upper) == (0, 0, 0.0, 0.0)
    assert router.summary().expert_call_rate is None
    assert router.decide(1.0).step == 1


def test_history_may_be_fed_in_parts() -> None:
    """Two warm starts before the first decision are one."""
    routers = [Router(EPSILON, ALPHA, seed=1) for _ in range(2)]
    routers[0].warm_start(HISTORY)
    routers[1].warm_start(HISTORY[:100])
    routers[1].warm_start(iter(HISTORY[100:]))
    assert routers[0].snapshot() == routers[1].snapshot()


@pytest.mark.parametrize("policy", ["portfolio", "paper", "budget", "naive", "hoeffding", "offline", "oracle"])
def test_history_is_in_the_journal(policy: str) -> None:
    """A router that began with history is rebuilt with it, and decides alike."""
    entries: list[Entry] = []
    router = Router(EPSILON, ALPHA, policy, seed=1, journal=entries.append)
    router.warm_start(HISTORY)
    decision = router.decide(0.2)
    copy = Router.rebuild(entries, seed=1)
    assert copy.snapshot() == router.snapshot()
    if decision.call_expert:
        router.observe(decision, 0.0)
        copy.observe(decision, 0.0)
    assert copy.decide(0.3) == router.decide(0.3)


def test_history_is_booked_for_each_of_several_scores() -> None:
    """Every wealth books a row's loss at its own score, with its own share of α."""
    router = Router(EPSILON, ALPHA, Portfolio(memory="revocable", scores={"good": 0.5, "bad": 0.5}))
    router.warm_start([({"bad": 1.0 - score, "good": score}, loss) for score, loss in HISTORY])
    bettor = router.snapshot()["state"]["game"]
    for index, scores in enumerate(([score for score, _ in HISTORY], [1.0 - score for score, _ in HISTORY])):
        alone = Router(EPSILON, ALPHA / 2, Portfolio(memory="revocable"))
        alone.warm_start(zip(scores, [loss for _, loss in HISTORY], strict=True))
        assert bettor["wealths"][index] == alone.snapshot()["state"]["game"]


def test_history_can_be_the_calibration_set() -> None:
    """Offline PAC is ready at once where history fills its set, with the bound that fits the losses."""
    binary = [(row.uncertainty, row.loss) for row in stream("binary", 300)]
    for rows, bound in ((HISTORY, "hoeffding-bentkus"), (binary, "clopper-pearson")):
        router = Router(EPSILON, ALPHA, Offline(size=300))
        router.warm_start(rows[:299])
        assert router.threshold == 0.0
        router.warm_start(rows[299:])
        scores, losses = zip(*rows, strict=True)
        assert router.threshold == calibrate(scores, losses, EPSILON, ALPHA, bound) > 0.0


def test_learned_rates_count_history_as_traffic() -> None:
    """Exploration driven by gain counts the rows of history as traffic and as losses."""
    router = Router(EPSILON, ALPHA, exploration=GainDriven(every=10), seed=1)
    router.warm_start(HISTORY)
    learner = router.snapshot()["state"]["learner"]
    looked_at = sum(row[2] for row in learner["table"])
    assert (learner["rounds"], looked_at + len(learner["recent"]), learner["audits"]) == (looked_at, 300, 300.0)
    assert sum(row[1] for row in learner["table"]) > 0


@pytest.mark.no_cover
@pytest.mark.parametrize("rows", [0, 200, 3000])
def test_history_adds_no_budget(rows: int) -> None:
    """The actual loss stays below ε of the live rounds, however long and easy the history was (MATH 7)."""
    start = partial(Router, 0.08, 0.1, "budget")
    broken = 0
    for seed in range(10):
        router: Any = start(seed=seed)
        router.warm_start([(0.5, 0.0)] * rows)
        served, worst = 0.0, 0.0
        for step in range(1, 1001):
            decision = router.decide(0.5)
            lost = 1.0 if step > 300 or rows else 0.0
            if decision.call_expert:
                router.observe(decision, lost)
            else:
                served += lost
            worst = max(worst, served / step)
        broken += worst > 0.08
    assert broken <= 3, "at most one in ten streams may break the promise; three of ten have chance 0.07"


def test_the_rows_that_were_fed_are_counted() -> None:
    """A program can ask whether its router has its history already."""
    router = Router(0.05)
    assert router.labelled == 0
    router.warm_start([(0.3, 0.0), (0.6, 1.0)])
    assert router.labelled == 2
