"""The verdict says neither more nor less than is promised."""

import re

import pytest

from bpac.dashboard.clean_rounds import clean_rounds_needed
from bpac.dashboard.history import History
from bpac.dashboard.unscored import MANY
from bpac.dashboard.verdict import Verdict, promise, verdict
from bpac.replay.simulation.laws import PowerLaw
from bpac.routing.policies import Portfolio
from bpac.routing.router import Router
from tests.dashboard.played import drawn, feed, played

EASY = PowerLaw(most=0.3, power=3.0)


def said(router: Router, history: History | None = None) -> Verdict:
    """The verdict on a game."""
    return verdict(router, history or History(), clean_rounds_needed(router))


def test_warming_up() -> None:
    """Until a draft is kept there is nothing to certify; what is missing is said."""
    router, history = Router(0.05, 0.1, seed=1), History()
    feed(router, history, [(0.5, 0.0)] * 10)
    told = said(router, history)
    assert told.level == "warming"
    assert f"at least {clean_rounds_needed(router)} more rounds without loss" in told.text
    assert "Only the expert's answers" in told.detail


def test_safe() -> None:
    """The certificate is within the limit; the bound is rounded up, and the promise is spelled out."""
    router, history = played(PowerLaw(most=0.04, power=1.0), 20_000, epsilon=0.05)
    certificate = router.certificate()
    assert certificate.average_upper <= 0.05
    told = said(router, history)
    assert told.level == "safe"
    found = re.fullmatch(r"Safe: served loss ≤ ([\d.]+) % with 90 % confidence, limit 5 %", told.text)
    assert found is not None
    assert certificate.average_upper <= float(found[1]) / 100 <= 1.1 * certificate.average_upper
    assert "no threshold is ever in force whose expected loss exceeds 5 %" in told.detail
    assert "keeps its distribution within an epoch" in told.detail


def test_certified_by_the_bets_before_the_checks_confirm_it() -> None:
    """Early the certificate is loose: it says so, when that can end, and that the promise is another one."""
    router, history = played(EASY, 500, epsilon=0.05)
    certificate = router.certificate()
    assert certificate.average_upper > 0.05
    told = said(router, history)
    assert told.level == "safe"
    said_so = r"Safe: expected loss ≤ 5 % with 90 % confidence; confirmed by checks so far: served loss ≤ ([\d.]+) %"
    found = re.fullmatch(said_so, told.text)
    assert found is not None
    assert certificate.average_upper <= float(found[1]) / 100 <= 1.1 * certificate.average_upper
    assert "does not mean that it is exceeded" in told.detail
    found = re.search(r"after ([\d,]+) rounds", told.detail)
    assert found is not None
    # With that many rounds and no further loss the same bound is within the limit; with one fewer it is not.
    rounds = int(found[1].replace(",", ""))
    assert certificate.upper / rounds <= 0.05 < certificate.upper / (rounds - 1)
    assert "Promised: with probability at least 90 %" in told.detail


def test_broken() -> None:
    """Only if the lower bound is above the limit: a threshold set by hand that keeps what should not be kept."""
    router, history = Router(0.05, 0.1, memory="latched", seed=2), History()
    feed(router, history, [(0.5, 0.0)] * 300)
    feed(router, history, [(0.5, 1.0)] * 4000)
    assert router.certificate().average_lower > 0.05
    told = said(router, history)
    assert told.level == "broken"
    found = re.fullmatch(r"Broken: served loss ≥ ([\d.]+) % with 90 % confidence, limit 5 %", told.text)
    assert found is not None
    assert 0.05 < float(found[1]) / 100 <= router.certificate().average_lower
    assert "Traffic has changed" in told.detail


def test_a_drift() -> None:
    """The alarm raises its voice, then rings; each has its own words, and both are for watching."""
    router, history = Router(0.2, 0.1, seed=2), History()
    feed(router, history, drawn(EASY, 20_000, 1))
    assert said(router, history).level == "safe"
    while router.summary().to_json()["alarm"] < 5.0:
        feed(router, history, [(0.1, 1.0)])
    told = said(router, history)
    assert told.level == "watch"
    assert told.text.startswith("Watch: the drift alarm stands at ")
    assert "50 % of them are checked" in told.detail
    while router.epoch == 1:
        feed(router, history, [(0.1, 1.0)])
    told = said(router, history)
    assert told.level == "watch"
    assert told.text.startswith("Drift: the alarm has rung; every query goes to the expert; at least ")
    feed(router, history, [(0.1, 1.0)])
    told = said(router, history)
    assert told.text.startswith(f"Drift: the alarm rang before round {router.step:,}; ")
    assert "Over all rounds: served loss ≤ " in told.detail
    feed(router, history, [(0.9, 0.0)] * 400)
    assert router.threshold > 0.0
    assert said(router, history).level == "safe"


def test_a_threshold_that_is_closed_again() -> None:
    """What was served is judged as before; that it is closed is added."""
    router, history = Router(0.1, 0.1, memory="revocable", seed=1), History()
    feed(router, history, [(0.0, 0.0)] * 100)
    while router.threshold > 0.0:
        feed(router, history, [(0.0, 1.0)])
    told = said(router, history)
    assert told.level in ("safe", "watch")
    assert f"The threshold is closed; at least {clean_rounds_needed(router):,} more rounds" in told.detail


@pytest.mark.parametrize(
    ("policy", "says"),
    [
        ("budget", "the average loss really served never exceeds 10 %, whatever the traffic"),
        ("offline", "the threshold that the calibration chooses loses at most 10 % on average"),
        ("paper", "no threshold is ever in force whose expected loss exceeds 10 %, as long as traffic keeps its"),
        ("paper-prior", "on an average weighted by its bets over the rounds so far, whatever the traffic"),
        (Portfolio(assume="any"), "above 10 % on average over the rounds so far, whatever the traffic"),
        ("hoeffding", "no threshold is ever in force whose expected loss exceeds 10 %"),
        ("naive", "makes no promise"),
        ("never", "makes no promise"),
    ],
)
def test_each_policy_promises_its_own(policy: str | Portfolio, says: str) -> None:
    """What the mathematics proves for it, and on which streams."""
    assert says in promise(Router(0.1, policy=policy).settings)


def test_not_confirmed() -> None:
    """A policy that certifies no threshold is not called safe before its certificate is within the limit."""
    router, history = Router(0.1, policy="naive", seed=1), History()
    feed(router, history, [(0.5, 0.0)] * 20)
    told = said(router, history)
    assert told.level == "watch"
    assert told.text.startswith("Not confirmed: served loss ≤ ")


def test_drafts_that_nobody_checks() -> None:
    """A policy without exploration has no certificate worth the name, and the verdict does not make one up."""
    router, history = Router(0.1, policy="never"), History()
    feed(router, history, [(0.5, 0.0)] * 50)
    told = said(router, history)
    assert told.level == "watch"
    assert "none is ever checked" in told.detail
    router = Router(0.1, policy="always")
    feed(router, History(), [(0.5, 0.0)] * 50)
    assert said(router).text == "Safe: served loss ≤ 0 % with 90 % confidence, limit 10 %"


def test_requests_without_a_score() -> None:
    """A route that does not route says so, why, and what to do; a score that comes ends it."""
    router, history = Router(0.05, 0.1, seed=1), History()
    for _ in range(3):
        history.unscored.withdrawn("no-score")
    told = said(router, history)
    assert told.level == "watch"
    assert told.text == "Not routing: none of the latest 3 requests had a score"
    assert "3 × no-score: the draft's server does not send what the score needs" in told.detail
    feed(router, history, [(0.5, 0.0)])
    assert said(router, history).level == "warming"
    for _ in range(MANY):
        history.unscored.withdrawn("draft-failed")
    assert said(router, history).text.startswith(f"Not routing: none of the latest {MANY} requests")


def test_audits_without_a_verdict() -> None:
    """Nothing is forgotten, every draft is audited, and the operator hears what to check."""
    router, history = Router(0.05, 0.1, seed=1), History()
    feed(router, history, [(0.5, 0.0)] * 300)
    assert router.threshold == 1.0
    while (router.summary().to_json()["doubt"]) < 10_000:
        decision = router.decide(0.5)
        if decision.call_expert:
            router.forfeit(decision, "grader failed")
    told = said(router, history)
    assert told.level == "watch"
    assert re.match(r"Watch: \d+ % of the latest audits of accepted drafts have no verdict; served loss ≤", told.text)
    assert "every draft is audited until verdicts come again; nothing that was learned is forgotten" in told.detail
    assert re.search(r"Check the expert and the grader \(given up so far: \d+ grader failed\)", told.detail)
    assert (router.epoch, router.threshold) == (1, 1.0)


def test_one_promise_over_all_epochs() -> None:
    """By default α is the chance that any epoch fails; with alpha_epochs = "each", that of each one, and it says so."""
    whole, each = Router(0.05, 0.1).settings, Router(0.05, 0.1, alpha_epochs="each").settings
    assert "with probability at least 90 %, over all epochs together, no threshold is ever in force" in promise(whole)
    assert "with probability at least 90 % in each epoch anew, no threshold is ever in force" in promise(each)
    assert sum(whole.alpha_of(epoch) for epoch in range(1, 10_000)) <= 0.1 == each.alpha_of(7)
