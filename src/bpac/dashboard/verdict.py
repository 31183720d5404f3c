"""The verdict on a game in words for an operator: what happened, since when, what it costs and what to do."""

import math
import re
from typing import NamedTuple

from bpac.betting.bounds.certificate import Certificate
from bpac.betting.drift.alarm import AlarmSettings
from bpac.betting.wealth.thresholds import PriorThreshold
from bpac.dashboard.history.history import History
from bpac.dashboard.remedies import UNSCORED, remedies_of
from bpac.dashboard.words import bound_percent, percent
from bpac.routing.policies import Budget, Fixed, Naive, Offline, Paper, Portfolio
from bpac.routing.router import Router
from bpac.routing.settings import Settings
from bpac.routing.summary import Summary

# The levels of a verdict, the most urgent first.
URGENCY = ("broken", "stopped", "watch", "warming", "safe")


class GameVerdict(NamedTuple):
    """Whether a game keeps its promise, in words.

    Parameters
    ----------
    level: ``warming``: no draft has been kept yet; ``safe``: the certificate is within the limit, or the bets have
        certified every threshold in use; ``watch``: neither is known, the drift alarm is raised, or many audits cannot
        be graded; ``stopped``: no draft can be scored; ``broken``: the certificate shows that the average loss exceeds
        the limit.
    text: the verdict in one line.
    detail: the reasons for it, and what to do.
    """

    level: str
    text: str
    detail: str


def verdict(router: Router, history: History, clean_rounds: int | None, unit: str = "request") -> GameVerdict:
    """The verdict on a game at this moment.

    Parameters
    ----------
    router: the router of the game.
    history: the history of the game.
    clean_rounds: the least number of further requests without a loss before a threshold opens; None if one is open
        already, or if none will ever open.
    unit: what a round is (default: a request).

    >>> verdict(Router(epsilon=0.05), History(), 75).text
    'Warming up: the expert answers every request; at least 75 more requests without a loss before a draft is kept'
    """
    level, text, detail = _of_requests(router, history, clean_rounds)
    return GameVerdict(level, _in_units(text, unit), _in_units(detail, unit))


def _in_units(text: str, unit: str) -> str:
    """What is said of requests, said of rounds that are something else."""
    for what in (
        "per request",
        "more requests",
        "before request",
        "counts requests",
        "all requests",
        "the requests so",
    ):
        text = text.replace(what, what.replace("request", unit))
    # Episodes that have begun go on with their model.
    text = text if unit == "request" else text.replace("every request", f"every new {unit}")
    return re.sub(r"(after [\d,]+) requests", rf"\1 {unit}s", text)


def _of_requests(router: Router, history: History, clean_rounds: int | None) -> GameVerdict:
    settings, certificate = router.settings, router.certificate()
    sure, limit = f"with {percent(certificate.confidence)} confidence", f"limit {percent(settings.epsilon)}"
    bound = bound_percent(certificate.average_upper, "upper", settings.epsilon)
    average = f"average loss per request ≤ {bound} {sure}, {limit}"
    wait = ""
    if clean_rounds is not None:
        wait = f"at least {clean_rounds:,} more requests without a loss before a draft is kept"
    if certificate.average_lower > settings.epsilon:
        least = bound_percent(certificate.average_lower, "lower", settings.epsilon)
        text = f"Limit exceeded: average loss per request ≥ {least} {sure}, {limit}"
        return GameVerdict("broken", text, _broken(settings))
    if (trouble := _trouble(router, history, average)) is not None:
        return trouble
    if wait and router.epoch > 1:
        step = history.last_event("epoch")
        when = "just now" if step is None or router.epoch != history.epoch else f"before request {step:,}"
        text = f"Drift: the alarm reset the threshold {when}; the expert answers every request; {wait} again"
        return GameVerdict("watch", text, f"Over all requests: {average}. {promise(settings)}")
    if wait and certificate.upper == 0.0:
        text = f"Warming up: the expert answers every request; {wait}"
        return GameVerdict("warming", text, f"Only the expert's answers have been served so far. {promise(settings)}")
    closed = f" The threshold is 0 at present; {wait} again." if wait else ""
    if certificate.average_upper <= settings.epsilon:
        return GameVerdict("safe", f"Safe: {average}", promise(settings) + closed)
    return _unconfirmed_verdict(settings, certificate, average, closed)


def _trouble(router: Router, history: History, average: str) -> GameVerdict | None:
    """A condition that needs an operator even if the certificate is within the limit; None if there is none."""
    if history.unscored.only(router.step):
        latest = history.unscored.in_a_row
        requests = "the latest request" if latest == 1 else f"the latest {latest:,} requests"
        text = f"Not routing: no draft could be scored in {requests}"
        return GameVerdict("stopped", text, _unscored(history))
    settings, summary = router.settings, router.summary()
    alarm = settings.policy.alarm
    level = summary.alarm or 0.0
    if alarm is None or max(level, summary.doubt or 0.0) < alarm.careful_at:
        return None
    if level < alarm.careful_at:
        share = f"{100.0 * summary.forfeit_share:.0f} % of the latest audits of accepted drafts could not be graded"
        return GameVerdict("watch", f"Watch: {share}; {average}", f"{_doubt(summary, alarm)} {promise(settings)}")
    reaction = (
        f"The drafts audited recently lost more than the limit allows, so {percent(alarm.careful_rate)} of the "
        f"accepted drafts are audited until the alarm falls below {alarm.careful_at:,.0f}; at {alarm.reset_at:,.0f} "
        "the threshold is reset to 0. Check whether the traffic or one of the models has changed."
    )
    text = f"Watch: the drift alarm is at {level:,.0f}; {average}"
    return GameVerdict("watch", text, f"{reaction} {promise(settings)}")


def _unscored(history: History) -> str:
    reasons = history.unscored.reasons
    remedies = remedies_of(reasons, UNSCORED)
    causes = "; ".join(f"{count:,} × {reason}: {remedies[reason]}" for reason, count in reasons.most_common())
    return f"The expert answers requests without a score, so they save nothing. Causes so far: {causes}."


def _doubt(summary: Summary, alarm: AlarmSettings) -> str:
    """What audits that cannot be graded cost, and what to do about them."""
    reaction = "every draft is audited" if (summary.doubt or 0.0) >= alarm.reset_at else "more drafts are audited"
    causes = ", ".join(f"{count:,} {cause}" for cause, count in sorted(summary.forfeits.items()))
    return (
        f"Ungraded audits could hide a drift, so each counts as a loss of 1 and {reaction} until audits can be graded "
        f"again; the threshold is kept. Check the expert and the grader (not graded so far: {causes})."
    )


def _unconfirmed_verdict(settings: Settings, certificate: Certificate, average: str, closed: str) -> GameVerdict:
    """The verdict while the certificate is above the limit: safe only if the bets certify each threshold in use."""
    detail = _unconfirmed(settings, certificate) + closed
    if not _certifies_thresholds(settings):
        return GameVerdict("watch", f"Not confirmed: {average}", detail)
    expected = f"expected loss ≤ {percent(settings.epsilon)} with {percent(1.0 - settings.alpha)} confidence"
    audited = bound_percent(certificate.average_upper, "upper", settings.epsilon)
    text = f"Safe: {expected}; confirmed by audits so far: average loss per request ≤ {audited}"
    return GameVerdict("safe", text, detail)


def _certifies_thresholds(settings: Settings) -> bool:
    """Whether a policy uses a threshold only after the bets have certified it for the present traffic."""
    return settings.exploration.floor > 0.0 and not isinstance(settings.policy, Fixed | Naive | Budget | Offline)


def promise(settings: Settings) -> str:
    """What a policy promises, in one sentence (MATH sections 2 to 7)."""
    sure, limit = f"with probability at least {percent(1.0 - settings.alpha)}", percent(settings.epsilon)
    policy = settings.policy
    if isinstance(policy, Fixed | Naive):
        return "This policy makes no promise."
    if isinstance(policy, Budget):
        return f"Promised: {sure}, the actual average loss per request never exceeds {limit}, on any traffic."
    if isinstance(policy, Offline):
        return (
            f"Promised: {sure}, the threshold that the calibration chooses has an expected loss of at most {limit}, as "
            "long as the traffic stays as it was during the calibration."
        )
    prior = isinstance(policy, Paper) and isinstance(policy.rule, PriorThreshold)
    if prior or (isinstance(policy, Portfolio) and policy.assume == "any"):
        return (
            f"Promised: {sure}, the threshold in use has at any time an expected loss of at most {limit} on average "
            f"over the requests so far{', weighted by the bets' if prior else ''}, on any traffic."
        )
    within = ""
    if policy.alarm is not None:
        within = " within an epoch"
        sure += " in each epoch separately" if settings.alpha_epochs == "each" else ", over all epochs together"
    return (
        f"Promised: {sure}, no threshold is ever used whose expected loss exceeds {limit}, as long as the distribution "
        f"of the traffic does not change{within}."
    )


def _broken(settings: Settings) -> str:
    chance, policy = percent(settings.alpha), settings.policy
    if isinstance(policy, Fixed | Naive):
        return promise(settings)
    if isinstance(policy, Budget):
        why = f"The promise may fail in {chance} of all games, and it failed in this one."
    else:
        why = (
            "Either the traffic has changed faster than the threshold could follow, or this is one of the "
            f"{chance} of games in which the promise may fail."
        )
    return (
        f'{why} To stop further losses, set policy = "always": the expert then answers every request. '
        'policy = "budget" limits the actual average loss on any traffic.'
    )


def _unconfirmed(settings: Settings, certificate: Certificate) -> str:
    if not settings.exploration.floor:
        return f"This policy never audits the drafts it keeps, so each counts as a loss of 1. {promise(settings)}"
    rounds = math.ceil(certificate.upper / settings.epsilon)
    return (
        "The audits so far are too few to confirm the limit, which does not mean that it is exceeded: the bound is "
        "loose at first and counts requests that are not graded yet as losses. Without further losses it can confirm "
        f"the limit after {rounds:,} requests. {promise(settings)}"
    )
