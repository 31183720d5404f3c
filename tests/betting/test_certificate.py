import itertools
import json
import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpac.betting.bounds.certificate import Certificate, ServedLoss
from bpac.betting.bounds.mixtures import RATE_MIXTURES, CertificateKind
from bpac.betting.payoff import LOG_UNIT, Terms
from tests.betting.rounds import a_round
from tests.transcriptions import served_loss_bound

ALPHA = 0.1
MANY = 10**9
Audit = tuple[float, float]
floors = st.sampled_from([0.05, 0.2, 0.6])
# (how far the propensity lies above the floor, loss)
audits = st.lists(st.tuples(st.floats(0, 0.99), st.sampled_from([0.0, 0.1, 0.5, 1.0])), max_size=15)


def above(floor: float, audits: Sequence[Audit]) -> list[Audit]:
    """The audits as (propensity, loss)."""
    return [(floor + share * (1.0 - floor), loss) for share, loss in audits]


KINDS: list[CertificateKind] = ["plain", "sharp"]
EPSILON = 0.1


def served_loss(
    floor: float, kind: CertificateKind = "plain", *, shadow: bool = False, alpha: float = ALPHA
) -> ServedLoss:
    """An account of the loss that is served."""
    return ServedLoss(Terms(EPSILON, floor, shadow=shadow), alpha, kind)


def audit(served: ServedLoss, propensity: float, loss: float) -> None:
    """An audit whose loss is known at once."""
    served.audited(propensity)
    served.resolve(a_round(propensity=propensity), loss)


def test_the_weights_of_a_mixture_sum_to_1_and_its_rates_keep_factors_positive() -> None:
    """So a mixture of martingales with mean 1 is one, too."""
    for mixture in RATE_MIXTURES.values():
        assert len(mixture.shares) == len(mixture.weights)
        assert math.fsum(mixture.weights) == pytest.approx(1.0, abs=1e-12)
        assert 0.0 < min(mixture.shares) < max(mixture.shares) < 1.0


@pytest.mark.no_cover
@given(floor=floors, audits=audits, shadow=st.booleans())
def test_sharp_bounds_are_where_their_mixture_reaches_its_bar(floor: float, audits: list[Audit], shadow: bool) -> None:
    """With a guess of 2ε they bound what the losses are beyond it, and the guesses of what was served are added."""
    served, known, kept = served_loss(floor, "sharp", shadow=shadow), above(floor, audits), 10**6
    for propensity, loss in known:
        audit(served, propensity, loss)
    certificate = served.certificate(rounds=100, kept=kept)
    mixture = RATE_MIXTURES["sharp"]
    shares = dict(zip(mixture.shares, mixture.weights, strict=True))
    for side, found in (("upper", certificate.upper), ("lower", certificate.lower)):
        rest = served_loss_bound(
            known, floor, ALPHA, shadow=shadow, upper=side == "upper", shares=shares, guess=2.0 * EPSILON
        )
        assert found == pytest.approx(rest + 2.0 * EPSILON * kept, rel=1e-8)
    assert served.upper() == certificate.upper


@pytest.mark.no_cover
@given(floor=floors, audits=audits, shadow=st.booleans())
def test_bounds_are_where_the_mixture_reaches_its_bar(floor: float, audits: list[Audit], shadow: bool) -> None:
    """Both bounds solve ``E_t = 1/α`` (MATH 7), as bisection does; rounding only ever widens them."""
    served, known = served_loss(floor, shadow=shadow), above(floor, audits)
    for propensity, loss in known:
        served.resolve(a_round(propensity=propensity), loss)
    certificate = served.certificate(rounds=100, kept=MANY)
    upper = served_loss_bound(known, floor, ALPHA, shadow=shadow)
    lower = served_loss_bound(known, floor, ALPHA, shadow=shadow, upper=False)
    assert certificate.upper == pytest.approx(upper, rel=1e-7)
    assert certificate.lower == pytest.approx(lower, rel=1e-7, abs=1e-6)
    assert certificate.upper >= upper * (1.0 - 1e-12)
    assert certificate.lower <= lower + 1e-11 * (1.0 + lower)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shadow", [False, True], ids=["serve", "shadow"])
@given(floor=floors, share=st.floats(0, 0.99), loss=st.one_of(st.just(0.0), st.floats(0.01, 1)))
def test_every_factor_has_expectation_1(
    floor: float, share: float, loss: float, shadow: bool, kind: CertificateKind
) -> None:
    """Over the coin alone, each factor averages 1 whatever the loss: above never, below by rounding only."""
    served = served_loss(floor, kind, shadow=shadow)
    propensity = floor + share * (1.0 - floor)
    audit(served, propensity, loss)
    guess = RATE_MIXTURES[kind].guess * EPSILON
    for side, sign in (("upper", 1.0), ("lower", -1.0)):
        for units, rate_share in zip(served.state()[side], RATE_MIXTURES[kind].shares, strict=True):
            rate = sign * rate_share * -math.log(1.0 - floor)
            kept = math.exp(rate * (loss - guess))
            audited = math.exp(units / LOG_UNIT) * (kept if shadow else 1.0)
            expectation = propensity * audited + (1.0 - propensity) * kept
            assert 1.0 - 1e-10 <= expectation <= 1.0 + 1e-14


@pytest.mark.no_cover
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shadow", [False, True], ids=["serve", "shadow"])
@pytest.mark.parametrize("cheap", [0.3, 1.0])
def test_over_all_paths_the_bounds_fail_as_seldom_as_promised(
    shadow: bool, cheap: float, kind: CertificateKind
) -> None:
    """On a stream that turns on what it sees, all 2^10 paths of the coin: either bound ever fails with chance ≤ α."""
    alpha, floor, rounds = 0.3, 0.4, 10
    failed_above = failed_below = 0.0
    for path in itertools.product((True, False), repeat=rounds):
        served, kept = served_loss(floor, kind, shadow=shadow, alpha=alpha), 0
        chance, total, above_it, below_it = 1.0, 0.0, False, False
        for step, audited in enumerate(path):
            # Hostile: a draft costs everything after one that was kept, and perhaps less after an audit.
            loss = 1.0 if step == 0 or not path[step - 1] else cheap
            propensity = floor if step % 3 else 0.7
            chance *= propensity if audited else 1.0 - propensity
            if audited:
                audit(served, propensity, loss)
            if shadow or not audited:
                total += loss
                kept += 1
            certificate = served.certificate(step + 1, kept if kind == "sharp" else step + 1)
            above_it = above_it or total > certificate.upper + 1e-9
            below_it = below_it or total < certificate.lower - 1e-9
        failed_above += chance * above_it
        failed_below += chance * below_it
    assert 0.0 < failed_above <= alpha
    assert failed_below <= alpha
    assert failed_below > 0.0 or shadow or cheap < 1.0, "where all is lost, the lower bound must be able to fail"


@given(floor=floors, audits=audits, shadow=st.booleans(), kind=st.sampled_from(KINDS))
def test_a_refund_undoes_its_charge(floor: float, audits: list[Audit], shadow: bool, kind: CertificateKind) -> None:
    """Charged and refunded audits end in the same bits as audits known at once, and never look better before."""
    at_once, late = served_loss(floor, kind, shadow=shadow), served_loss(floor, kind, shadow=shadow)
    rounds = [a_round(propensity=propensity) for propensity, _ in above(floor, audits)]
    for decision, (_, loss) in zip(rounds, audits, strict=True):
        at_once.audited(decision.propensity)
        late.audited(decision.propensity)
        at_once.resolve(decision, loss)
        late.charge(decision)
    assert late.upper() >= at_once.upper()
    assert late.certificate(100, MANY).lower <= at_once.certificate(100, MANY).lower
    for decision, (_, loss) in zip(rounds, audits, strict=True):
        late.refund(decision, loss)
    assert late.state() == at_once.state()
    assert late.upper() == at_once.upper()


@pytest.mark.no_cover
@given(floor=floors, audits=audits, shadow=st.booleans(), kind=st.sampled_from(KINDS))
def test_no_mixture_is_below_its_best_rate(
    floor: float, audits: list[Audit], shadow: bool, kind: CertificateKind
) -> None:
    """The bound lies between that of the best rate, known afterwards only, and that rate at its share of α."""
    served = served_loss(floor, kind, shadow=shadow)
    for propensity, loss in above(floor, audits):
        audit(served, propensity, loss)
    served.served_instead()
    best = served.best_upper(MANY)
    assert best * (1.0 - 1e-12) <= served.certificate(100, MANY).upper
    mixture = RATE_MIXTURES[kind]
    single = served_loss(floor, kind, shadow=shadow, alpha=ALPHA * min(mixture.weights))
    for propensity, loss in above(floor, audits):
        audit(single, propensity, loss)
    single.served_instead()
    assert served.certificate(100, MANY).upper <= single.best_upper(MANY) * (1.0 + 1e-12)


def test_rounds_without_information_leave_the_bounds_alone() -> None:
    """An audit without a loss, one that was certain, and a kept draft leave both bounds as they were."""
    served = served_loss(0.2)
    before = served.certificate(10, MANY)
    served.resolve(a_round(propensity=0.2), 0.0)
    for loss in (0.0, 1.0):
        certain = a_round(propensity=1.0)
        served.resolve(certain, loss)
        served.charge(certain)
        served.refund(certain, loss)
    served.decided(a_round(propensity=0.2, call_expert=False))
    assert served.certificate(10, MANY) == before


def test_an_audit_that_is_given_up_counts_as_loss_1_above_and_0_below() -> None:
    """A forfeit keeps the charge: the careful guess for each of the two bounds."""
    served, worst, best = served_loss(0.2), served_loss(0.2), served_loss(0.2)
    decision = a_round(propensity=0.2)
    served.charge(decision)
    served.forfeit(decision)
    worst.resolve(decision, 1.0)
    assert served.upper() == worst.upper()
    assert served.certificate(1, MANY).lower == best.certificate(1, MANY).lower


def test_a_draft_served_in_the_experts_place_counts_as_loss_1() -> None:
    """No coin covers such an answer: it adds 1 to the upper bound, also to the trivial one."""
    served = served_loss(0.2)
    before = served.upper()
    served.served_instead()
    assert served.upper() == before + 1.0
    assert served.certificate(rounds=5, kept=2).upper == 3.0


def test_without_exploration_there_are_only_trivial_bounds() -> None:
    """Without coins, all drafts that were served may have lost, or none."""
    served = served_loss(0.0)
    decision = a_round(propensity=0.0)
    served.resolve(decision, 1.0)
    served.charge(decision)
    served.refund(decision, 1.0)
    assert served.upper() == math.inf
    assert served.certificate(rounds=9, kept=4) == Certificate(rounds=9, lower=0.0, upper=4, confidence=0.9)
    assert served.best_upper(4) == 4
    copy = served_loss(0.0)
    copy.load(json.loads(json.dumps(served.state())))
    assert copy.state() == served.state()


@pytest.mark.no_cover
@given(audits=audits, kind=st.sampled_from(KINDS))
def test_bounds_continue_from_a_saved_state(audits: list[Audit], kind: CertificateKind) -> None:
    """State through JSON gives the same bounds, also where they have been computed before."""
    served, copy = served_loss(0.2, kind), served_loss(0.2, kind)
    assert copy.upper() > 0.0
    for propensity, loss in above(0.2, audits):
        audit(served, propensity, loss)
    served.served_instead()
    copy.load(json.loads(json.dumps(served.state())))
    assert copy.certificate(50, MANY) == served.certificate(50, MANY)


def test_a_certificate_prints_bound_confidence_and_rounds() -> None:
    """The sentence holds the average, the confidence and the rounds; before the first round the averages are 0."""
    assert str(Certificate(200, 1.0, 10.0, 0.9)) == "served loss ≤ 5.00% with 90% confidence after 200 rounds"
    assert (Certificate(200, 1.0, 10.0, 0.9).average_lower, Certificate(0, 0.0, 0.0, 0.9).average_upper) == (0.005, 0.0)
    assert Certificate(0, 0.0, 0.0, 0.9).average_lower == 0.0
