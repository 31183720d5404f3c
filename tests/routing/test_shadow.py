import math
from typing import Any

import pytest

from bpac import Router
from bpac.betting.bounds.certificate import ServedLoss
from bpac.betting.ledgers.levels import EvenLevels
from bpac.betting.payoff import Terms
from bpac.routing.coins import ListedCoins
from bpac.routing.exploration.schedules import Constant
from bpac.routing.policies import Fixed, Hoeffding, Portfolio
from tests.routing.streams import stream
from tests.transcriptions import PortfolioTranscription, Row, served_loss_bound, transcribed_trace

ROWS = stream("binary", 800)


def shadow(policy: Any, rows: list[Row], **settings: Any) -> Router:
    """A router whose audits run behind the drafts that are served."""
    coins = ListedCoins([row.coin for row in rows])
    return Router(0.12, 0.1, policy, explore="shadow", coins=coins, **settings)


def test_the_caller_never_waits_for_an_audit() -> None:
    """Below the threshold the draft is served, audited or not; above it never (MATH 6)."""
    router = shadow(Fixed(0.5, explores=0.3), ROWS)
    decisions = [router.decide(row.uncertainty) for row in ROWS]
    assert all(decision.serve_draft == (decision.uncertainty < 0.5) for decision in decisions)
    assert any(decision.serve_draft and decision.call_expert for decision in decisions)
    assert router.certificate().upper <= sum(decision.serve_draft for decision in decisions)


def test_shadow_audits_weigh_losses_in_full() -> None:
    """With shadow audits the wealth is that of κ = 1, at every step."""
    router = shadow(Portfolio(memory="revocable"), ROWS)
    slow = PortfolioTranscription(0.12, 0.1, 1.0, [row.uncertainty for row in ROWS])
    for row, expected in zip(ROWS, transcribed_trace(lambda: slow, ROWS, certain_while_closed=True), strict=True):
        decision = router.decide(row.uncertainty)
        assert decision.call_expert == expected.call_expert
        if decision.call_expert:
            router.observe(decision, row.loss)
        assert router.threshold == pytest.approx(expected.threshold_after, abs=1e-9)
    assert router.threshold > 0.0


def test_the_certificate_counts_what_audits_served() -> None:
    """Drafts that were audited were served as well, and the certificate bounds their losses too (MATH 7)."""
    router = shadow(Fixed(0.8, explores=0.4), ROWS)
    audits, served = [], 0.0
    for row in ROWS:
        decision = router.decide(row.uncertainty)
        served += row.loss if decision.serve_draft else 0.0
        if decision.call_expert:
            router.observe(decision, row.loss)
            if decision.propensity < 1.0:
                audits.append((decision.propensity, row.loss))
    certificate = router.certificate()
    upper = served_loss_bound(audits, 0.4, 0.1, shadow=True)
    assert certificate.upper == pytest.approx(upper, rel=1e-6)
    assert certificate.lower == pytest.approx(served_loss_bound(audits, 0.4, 0.1, shadow=True, upper=False), rel=1e-6)
    assert 0.0 < certificate.lower <= served <= certificate.upper < len(ROWS)


def test_a_budget_with_shadow_audits_keeps_room_for_its_own_round() -> None:
    """A draft may be kept only if even its own loss, served and seen, leaves the bound within ε of the rounds."""
    router, served = shadow("budget", ROWS), ServedLoss(Terms(0.12, 0.2, shadow=True), 0.1)
    kept = 0
    for row in ROWS:
        decision = router.decide(row.uncertainty)
        if decision.serve_draft:
            kept += 1
            assert served.upper() + 1.0 <= 0.12 * decision.step
        if decision.call_expert:
            router.observe(decision, row.loss)
            served.resolve(decision, row.loss)
    assert kept > 50


def test_hoeffdings_interval_is_as_wide_as_shadow_losses() -> None:
    """Weighted losses range up to κ/ρ, which is 1/ρ with shadow audits: the interval must be that wide (MATH 6, 10)."""
    epsilon, rate, wide = 0.9, 0.5, 1.0 / 0.5
    coins = ListedCoins([0.99] * 400)
    router = Router(
        epsilon, 0.1, Hoeffding(grid=EvenLevels(11)), exploration=Constant(rate), explore="shadow", coins=coins
    )
    for step in range(1, 200):
        router.decide(1.0)
        router.observe(router.owed[0], 0.0)
        width = wide * math.sqrt(math.log(math.pi**2 * step**2 / 0.6) / (2 * step))
        assert (router.threshold == 1.0) == (width <= epsilon)
