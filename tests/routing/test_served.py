import json

import pytest

from bpac import Router
from bpac.routing.coins import ListedCoins
from bpac.routing.journal.entries import Entry
from bpac.routing.policies import Fixed
from tests.routing.streams import stream
from tests.transcriptions import served_loss_bound

ROWS = stream("graded", 900)


def test_the_certificate_holds_what_was_served() -> None:
    """Both bounds are those of section 7 for the audits by coin, and the truth lies between them."""
    router = Router(0.1, 0.1, Fixed(0.9, explores=0.3), coins=ListedCoins([row.coin for row in ROWS]))
    audits: list[tuple[float, float]] = []
    served = 0.0
    for row in ROWS:
        decision = router.decide(row.uncertainty)
        if not decision.call_expert:
            served += row.loss
            continue
        router.observe(decision, row.loss)
        if decision.propensity < 1.0:
            audits.append((decision.propensity, row.loss))
    certificate = router.certificate()
    assert certificate.rounds == len(ROWS)
    assert certificate.upper == pytest.approx(served_loss_bound(audits, 0.3, 0.1), rel=1e-6)
    assert certificate.lower == pytest.approx(served_loss_bound(audits, 0.3, 0.1, upper=False), rel=1e-6)
    assert 0.0 < certificate.lower <= served <= certificate.upper
    assert router.summary().certificate.average_upper == certificate.upper / len(ROWS)


@pytest.mark.no_cover
def test_open_audits_count_as_losses_in_the_certificate() -> None:
    """An open audit counts as the careful guess in either bound, and as its loss once that is known."""
    router = Router(0.1, 0.1, Fixed(0.9, explores=0.3), coins=ListedCoins([row.coin for row in ROWS]))
    decisions = [router.decide(row.uncertainty * 0.8) for row in ROWS]
    audits = [decision for decision in decisions if decision.call_expert]
    for known in range(0, len(audits) + 1, 40):
        for decision in audits[max(known - 40, 0) : known]:
            router.observe(decision, 0.25)
        losses = [(0.3, 0.25)] * known
        certificate = router.certificate()
        kept = len(ROWS) - len(audits)
        upper = served_loss_bound([*losses, *[(0.3, 1.0)] * (len(audits) - known)], 0.3, 0.1)
        assert certificate.upper == pytest.approx(min(upper, kept), rel=1e-6)
        assert certificate.lower == pytest.approx(served_loss_bound(losses, 0.3, 0.1, upper=False), rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("policy", ["portfolio", "paper", "budget", "always"])
def test_a_draft_served_for_a_failed_expert_counts_as_loss_1(policy: str) -> None:
    """Such an answer is outside the theorem: each adds 1 to the upper bound, for good (MATH 5)."""
    entries: list[Entry] = []
    router = Router(0.1, 0.1, policy, seed=1, journal=entries.append)
    decisions = [router.decide(0.5) for _ in range(6)]
    for decision in decisions[:3]:
        router.forfeit(decision, "expert failed")
    assert router.certificate().upper == 0.0
    for decision in decisions[3:]:
        router.forfeit(decision, "expert failed", draft_served=True)
    assert router.certificate().upper == 3.0
    assert router.summary().forfeits == {"expert failed": 6}
    assert Router.rebuild(entries).certificate() == router.certificate()
    assert Router.rebuild([], snapshot=router.snapshot()).certificate() == router.certificate()


@pytest.mark.parametrize(("policy", "kept"), [("always", 0), ("never", 40), ("offline", 0)])
def test_without_exploration_the_certificate_is_trivial(policy: str, kept: int) -> None:
    """Without audits, all drafts that were served may have been wrong, or none."""
    router = Router(0.1, 0.2, policy)
    for _ in range(40):
        router.decide(0.5)
    certificate = router.certificate()
    assert (certificate.rounds, certificate.lower, certificate.upper) == (40, 0.0, kept)
    assert certificate.confidence == 0.8


def test_a_summary_has_these_json_keys() -> None:
    """A summary can be written as JSON at any time, before the first round too."""
    router = Router(0.1, 0.2, seed=1)
    empty = json.loads(json.dumps(router.summary().to_json()))
    assert empty["steps"] == 0
    assert empty["expert_call_rate"] is None
    decisions = [router.decide(0.5) for _ in range(4)]
    router.observe(decisions[0], 0.5)
    router.forfeit(decisions[1], "timeout")
    summary = json.loads(json.dumps(router.summary().to_json()))
    assert summary == {
        "policy": "Portfolio",
        "epsilon": 0.1,
        "alpha": 0.2,
        "steps": 4,
        "threshold": 0.0,
        "expert_calls": 4,
        "expert_call_rate": 1.0,
        "owed": 2,
        "forfeits": {"timeout": 1},
        "epoch": 1,
        "alarm": summary["alarm"],
        "doubt": 1.0,
        "forfeit_share": 0.0,
        "refused": 0,
        "withdrawn": 0,
        "exploration_rate": 0.9,
        "audit_price": 1.0,
        "expert_busy": False,
        "expected_rounds": 0,
        "certificate": {
            "rounds": 4,
            "lower": 0.0,
            "upper": 0.0,
            "confidence": 0.8,
            "average_upper": 0.0,
            "best_average_upper": 0.0,
        },
    }
