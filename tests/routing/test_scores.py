from typing import Any

import pytest

from bpac import Router
from bpac.routing.coins import ListedCoins
from bpac.routing.policies import Portfolio
from tests.routing.streams import stream
from tests.transcriptions import PortfolioTranscription

ROWS = stream("binary", 700)
NOISE = [row.uncertainty for row in stream("binary", 700, seed=9)]
SCORES = [{"noise": noise, "entropy": row.uncertainty} for noise, row in zip(NOISE, ROWS, strict=True)]
SHARES = {"noise": 0.3, "entropy": 0.7}


def router(memory: Any) -> Router:
    """A router with one score that is noise and one that is exact."""
    policy = Portfolio(memory=memory, scores=SHARES)
    return Router(0.12, 0.1, policy, coins=ListedCoins([row.coin for row in ROWS]))


@pytest.mark.no_cover
@pytest.mark.parametrize("memory", ["revocable", "latched"])
def test_every_score_has_a_wealth_of_its_own(memory: Any) -> None:
    """All wealths see the same rounds, each at its own score and level α·share; the active one decides (MATH 8)."""
    several = router(memory)
    slow = [
        PortfolioTranscription(
            0.12, 0.1 * share, 0.95, [scores[name] for scores in SCORES], latched=memory == "latched"
        )
        for name, share in SHARES.items()
    ]
    accepted = [0.0, 0.0]
    active = 0
    for scores, row in zip(SCORES, ROWS, strict=True):
        own = list(scores.values())
        decision = several.decide(scores)
        assert decision.uncertainties == tuple(own)
        assert decision.uncertainty == own[active]
        assert decision.threshold == pytest.approx(slow[active].threshold, abs=1e-9)
        loss = row.loss if decision.call_expert else 0.0
        if decision.call_expert:
            several.observe(decision, row.loss)
        for wealth, score in zip(slow, own, strict=True):
            wealth.settle(score, decision.propensity, decision.least_propensity, loss)
        active = several.snapshot()["state"]["game"]["active"]
        accepted[active] += 1
        assert several.threshold == pytest.approx(slow[active].threshold, abs=1e-9)
    assert min(accepted) > 0, "the score in use must change"


def test_the_score_that_accepts_more_is_used() -> None:
    """The first score decides until another has accepted more of the traffic; then that one does."""
    several = router("revocable")
    used = []
    for scores, row in zip(SCORES, ROWS, strict=True):
        decision = several.decide(scores)
        used.append(decision.uncertainty == scores["entropy"])
        if decision.call_expert:
            several.observe(decision, row.loss)
    assert not any(used[:20])
    assert all(used[-300:])
    kept = several.snapshot()["state"]["game"]["accepted"]
    assert kept[1] > kept[0]


def test_late_outcomes_reach_every_wealth() -> None:
    """Charged, refunded and given up: both wealths book the outcome of the round."""
    late, at_once = (Router(0.12, 0.1, Portfolio(memory="revocable", scores=SHARES), seed=1) for _ in range(2))
    for step, (scores, row) in enumerate(zip(SCORES[:20], ROWS, strict=False)):
        at_once.observe(at_once.decide(scores), 1.0 if step == 7 else row.loss)
        late.decide(scores)
    for decision in late.owed:
        if decision.step == 8:
            late.forfeit(decision)
        else:
            late.observe(decision, ROWS[decision.step - 1].loss)
    states = [router.snapshot()["state"]["game"]["wealths"] for router in (late, at_once)]
    assert states[0] == states[1]


def test_log_wealth_is_refused_with_several_scores() -> None:
    """With several scores a threshold alone does not identify a wealth."""
    with pytest.raises(ValueError, match="keeps no wealth that belongs to one threshold"):
        router("latched").log_wealth(0.5)
