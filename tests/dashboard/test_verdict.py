"""The verdict claims neither more nor less than is promised."""

import re

import pytest

from bpac.dashboard.estimates.clean_rounds import clean_rounds_needed
from bpac.dashboard.history.history import History
from bpac.dashboard.history.unscored import MANY
from bpac.dashboard.verdict import GameVerdict, promise, verdict
from bpac.replay.simulation.laws import PowerLaw
from bpac.routing.policies import Portfolio
from bpac.routing.router import Router
from tests.dashboard.played import drawn, feed, played

EASY = PowerLaw(most=0.3, power=3.0)


def verdict_on(router: Router, history: History | None = None) -> GameVerdict:
    """The verdict on a game."""
    return verdict(router, history or History(), clean_rounds_needed(router))


def test_warming_up() -> None:
    """Until a draft is kept, the verdict says how many requests are missing."""
    router, history = Router(0.05, 0.1, seed=1), History()
    feed(router, history, [(0.5, 0.0)] * 10)
    found = verdict_on(router, history)
    assert found.level == "warming"
    assert f"at least {clean_rounds_needed(router)} more requests without a loss" in found.text
    assert "Only the expert's answers" in found.detail


def test_safe() -> None:
    """The certificate is within the limit; the bound is rounded up, and the promise is spelled out."""
    router, history = played(PowerLaw(most=0.04, power=1.0), 20_000, epsilon=0.05)
    certificate = router.certificate()
    assert certificate.average_upper <= 0.05
    found = verdict_on(router, history)
    assert found.level == "safe"
    match = re.fullmatch(r"Safe: average loss per request ≤ ([\d.]+) % with 90 % confidence, limit 5 %", found.text)
    assert match is not None
    assert certificate.average_upper <= float(match[1]) / 100 <= 1.1 * certificate.average_upper
    assert "no threshold is ever used whose expected loss exceeds 5 %" in found.detail
    assert "as long as the distribution of the traffic does not change within an epoch" in found.detail


def test_certified_by_the_bets_before_the_checks_confirm_it() -> None:
    """Early the certificate is loose: it says so, when that can end, and that the promise is another one."""
    router, history = played(EASY, 500, epsilon=0.05)
    certificate = router.certificate()
    assert certificate.average_upper > 0.05
    found = verdict_on(router, history)
    assert found.level == "safe"
    text = "Safe: expected loss ≤ 5 % with 90 % confidence; confirmed by audits so far: average loss per request ≤ "
    assert found.text.startswith(text)
    match = re.fullmatch(r"([\d.]+) %", found.text.removeprefix(text))
    assert match is not None
    assert certificate.average_upper <= float(match[1]) / 100 <= 1.1 * certificate.average_upper
    assert "does not mean that it is exceeded" in found.detail
    match = re.search(r"after ([\d,]+) requests", found.detail)
    assert match is not None
    # With that many rounds and no further loss the same bound is within the limit; with one fewer it is not.
    rounds = int(match[1].replace(",", ""))
    assert certificate.upper / rounds <= 0.05 < certificate.upper / (rounds - 1)
    assert "Promised: with probability at least 90 %" in found.detail


def test_a_limit_that_is_exceeded() -> None:
    """Only if the lower bound is above the limit: a latched threshold that keeps what should not be kept."""
    router, history = Router(0.05, 0.1, memory="latched", seed=2), History()
    feed(router, history, [(0.5, 0.0)] * 300)
    feed(router, history, [(0.5, 1.0)] * 4000)
    assert router.certificate().average_lower > 0.05
    found = verdict_on(router, history)
    assert found.level == "broken"
    text = r"Limit exceeded: average loss per request ≥ ([\d.]+) % with 90 % confidence, limit 5 %"
    match = re.fullmatch(text, found.text)
    assert match is not None
    assert 0.05 < float(match[1]) / 100 <= router.certificate().average_lower
    assert "the traffic has changed" in found.detail
    assert 'set policy = "always"' in found.detail


def test_a_drift() -> None:
    """The alarm rises, then resets the threshold; each has its own text, and both need attention."""
    router, history = Router(0.2, 0.1, seed=2), History()
    feed(router, history, drawn(EASY, 20_000, 1))
    assert verdict_on(router, history).level == "safe"
    while (router.summary().alarm or 0.0) < 5.0:
        feed(router, history, [(0.1, 1.0)])
    found = verdict_on(router, history)
    assert found.level == "watch"
    assert found.text.startswith("Watch: the drift alarm is at ")
    assert "50 % of the accepted drafts are audited" in found.detail
    while router.epoch == 1:
        feed(router, history, [(0.1, 1.0)])
    found = verdict_on(router, history)
    assert found.level == "watch"
    assert found.text.startswith(
        "Drift: the alarm reset the threshold just now; the expert answers every request; at least "
    )
    feed(router, history, [(0.1, 1.0)])
    found = verdict_on(router, history)
    assert found.text.startswith(f"Drift: the alarm reset the threshold before request {router.step:,}; ")
    assert "Over all requests: average loss per request ≤ " in found.detail
    feed(router, history, [(0.9, 0.0)] * 400)
    assert router.threshold > 0.0
    assert verdict_on(router, history).level == "safe"


def test_a_threshold_that_is_closed_again() -> None:
    """The average loss is judged as before; the text adds that the threshold is 0."""
    router, history = Router(0.1, 0.1, memory="revocable", seed=1), History()
    feed(router, history, [(0.0, 0.0)] * 100)
    while router.threshold > 0.0:
        feed(router, history, [(0.0, 1.0)])
    found = verdict_on(router, history)
    assert found.level in ("safe", "watch")
    assert f"The threshold is 0 at present; at least {clean_rounds_needed(router):,} more requests" in found.detail


@pytest.mark.parametrize(
    ("policy", "says"),
    [
        ("budget", "the actual average loss per request never exceeds 10 %, on any traffic"),
        ("offline", "the threshold that the calibration chooses has an expected loss of at most 10 %"),
        ("paper", "no threshold is ever used whose expected loss exceeds 10 %, as long as the distribution of"),
        ("paper-prior", "at most 10 % on average over the requests so far, weighted by the bets, on any traffic"),
        (Portfolio(assume="any"), "at most 10 % on average over the requests so far, on any traffic"),
        ("hoeffding", "no threshold is ever used whose expected loss exceeds 10 %"),
        ("naive", "makes no promise"),
        ("never", "makes no promise"),
    ],
)
def test_each_policy_states_its_own_promise(policy: str | Portfolio, says: str) -> None:
    """What the mathematics proves for it, and on which streams."""
    assert says in promise(Router(0.1, policy=policy).settings)


def test_not_confirmed() -> None:
    """A policy that certifies no threshold is not called safe before its certificate is within the limit."""
    router, history = Router(0.1, policy="naive", seed=1), History()
    feed(router, history, [(0.5, 0.0)] * 20)
    found = verdict_on(router, history)
    assert found.level == "watch"
    assert found.text.startswith("Not confirmed: average loss per request ≤ ")


def test_drafts_that_are_never_audited() -> None:
    """A policy without exploration has no useful certificate, and the verdict does not claim one."""
    router, history = Router(0.1, policy="never"), History()
    feed(router, history, [(0.5, 0.0)] * 50)
    found = verdict_on(router, history)
    assert found.level == "watch"
    assert "never audits the drafts it keeps" in found.detail
    router = Router(0.1, policy="always")
    feed(router, History(), [(0.5, 0.0)] * 50)
    assert verdict_on(router).text == "Safe: average loss per request ≤ 0 % with 90 % confidence, limit 10 %"


def test_requests_without_a_score() -> None:
    """A route that does not route says so, why, and what to do; a score that comes ends it."""
    router, history = Router(0.05, 0.1, seed=1), History()
    for _ in range(3):
        history.unscored.withdrawn("no-score")
    found = verdict_on(router, history)
    assert found.level == "stopped"
    assert found.text == "Not routing: no draft could be scored in the latest 3 requests"
    assert "3 × no-score: the draft model's server does not return what the score needs" in found.detail
    feed(router, history, [(0.5, 0.0)])
    assert verdict_on(router, history).level == "warming"
    for _ in range(MANY):
        history.unscored.withdrawn("draft-failed")
    assert verdict_on(router, history).text.endswith(f"no draft could be scored in the latest {MANY} requests")


def test_audits_that_cannot_be_graded() -> None:
    """The threshold is kept, every draft is audited, and the verdict says what to check."""
    router, history = Router(0.05, 0.1, seed=1), History()
    feed(router, history, [(0.5, 0.0)] * 300)
    assert router.threshold == 1.0
    while (router.summary().doubt or 0.0) < 10_000:
        decision = router.decide(0.5)
        if decision.call_expert:
            router.forfeit(decision, "grader failed")
    found = verdict_on(router, history)
    assert found.level == "watch"
    assert re.match(r"Watch: \d+ % of the latest audits of accepted drafts could not be graded; average", found.text)
    assert "every draft is audited until audits can be graded again; the threshold is kept" in found.detail
    assert re.search(r"Check the expert and the grader \(not graded so far: \d+ grader failed\)", found.detail)
    assert (router.epoch, router.threshold) == (1, 1.0)


def test_one_promise_over_all_epochs() -> None:
    """By default α is the chance that any epoch fails; with alpha_epochs = "each", that of each one, and it says so."""
    whole, each = Router(0.05, 0.1).settings, Router(0.05, 0.1, alpha_epochs="each").settings
    assert "with probability at least 90 %, over all epochs together, no threshold is ever used" in promise(whole)
    assert "with probability at least 90 % in each epoch separately, no threshold is ever used" in promise(each)
    assert sum(whole.alpha_of(epoch) for epoch in range(1, 10_000)) <= 0.1 == each.alpha_of(7)
