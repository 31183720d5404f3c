"""The verdict on a game in words: is it safe, what exactly is promised, and what is only not confirmed yet."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from bpac.betting.bounds.certificate import Certificate
from bpac.betting.drift.alarm import AlarmSettings
from bpac.betting.wealth.thresholds import PriorThreshold
from bpac.dashboard.history import History
from bpac.dashboard.remedies import UNSCORED, remedies_of
from bpac.dashboard.words import bound_percent, percent
from bpac.routing.policies import Budget, Fixed, Naive, Offline, Paper, Portfolio
from bpac.routing.router import Router
from bpac.routing.settings import Settings


class Verdict(NamedTuple):
    """A verdict.

    Parameters
    ----------
    level: ``warming``: no draft has been kept yet; ``safe``: the certificate is within the limit, or the bets have
        certified every threshold in force; ``watch``: neither is known, the drift alarm has something to say,
        audits have no verdicts, or requests no scores;
        ``broken``: the loss served is above the limit, by the certificate.
    text: the verdict in one line.
    detail: what it rests on.
    """

    level: str
    text: str
    detail: str


def verdict(router: Router, history: History, clean_rounds: int | None) -> Verdict:
    """Say where a game stands.

    Parameters
    ----------
    router: of the game.
    history: of the game.
    clean_rounds: how many more rounds without loss it takes at least to open a threshold; none if one is open, or none
        ever will be.

    >>> verdict(Router(epsilon=0.05), History(), 75).text
    'Warming up: every query goes to the expert; at least 75 more rounds without loss before a draft is kept'
    """
    settings, certificate = router.settings, router.certificate()
    sure, limit = f"with {percent(certificate.confidence)} confidence", f"limit {percent(settings.epsilon)}"
    served = f"served loss ≤ {bound_percent(certificate.average_upper, 'upper', settings.epsilon)} {sure}, {limit}"
    wait = "" if clean_rounds is None else f"at least {clean_rounds:,} more rounds without loss before a draft is kept"
    if certificate.average_lower > settings.epsilon:
        least = bound_percent(certificate.average_lower, "lower", settings.epsilon)
        return Verdict("broken", f"Broken: served loss ≥ {least} {sure}, {limit}", _broken(settings))
    if (trouble := _trouble(router, history, served)) is not None:
        return trouble
    if wait and router.epoch > 1:
        rang = history.last_event("epoch")
        when = "has rung" if rang is None or router.epoch != history.epoch else f"rang before round {rang:,}"
        text = f"Drift: the alarm {when}; every query goes to the expert; {wait} again"
        return Verdict("watch", text, f"Over all rounds: {served}. {promise(settings)}")
    if wait and certificate.upper == 0.0:
        text = f"Warming up: every query goes to the expert; {wait}"
        return Verdict("warming", text, f"Only the expert's answers have been served so far. {promise(settings)}")
    closed = f" The threshold is closed; {wait} again." if wait else ""
    if certificate.average_upper <= settings.epsilon:
        return Verdict("safe", f"Safe: {served}", promise(settings) + closed)
    return _unconfirmed_verdict(settings, certificate, served, closed)


def _trouble(router: Router, history: History, served: str) -> Verdict | None:
    """What an operator should look at, whatever the certificate says; none if there is nothing."""
    if history.unscored.only(router.step):
        text = f"Not routing: none of the latest {history.unscored.in_a_row:,} requests had a score"
        return Verdict("watch", text, _unscored(history))
    settings, summary = router.settings, router.summary().to_json()
    alarm = settings.policy.alarm
    if alarm is None or max(summary["alarm"], summary["doubt"]) < alarm.careful_at:
        return None
    if summary["alarm"] < alarm.careful_at:
        share = f"{100.0 * summary['forfeit_share']:.0f} % of the latest audits of accepted drafts have no verdict"
        return Verdict("watch", f"Watch: {share}; {served}", f"{_doubt(summary, alarm)} {promise(settings)}")
    looks = (
        f"The drafts checked lately lost more than the limit allows, so {percent(alarm.careful_rate)} of them are "
        f"checked until the alarm is quiet; at {alarm.reset_at:,.0f} the threshold starts again from 0."
    )
    text = f"Watch: the drift alarm stands at {summary['alarm']:,.0f}; {served}"
    return Verdict("watch", text, f"{looks} {promise(settings)}")


def _unscored(history: History) -> str:
    reasons = history.unscored.reasons
    remedies = remedies_of(reasons, UNSCORED)
    told = "; ".join(f"{count:,} × {reason}: {remedies[reason]}" for reason, count in reasons.most_common())
    return f"The expert answers requests without a score, so nothing is saved. So far {told}."


def _doubt(summary: Mapping[str, Any], alarm: AlarmSettings) -> str:
    """What audits without a verdict cost, and what to do about them."""
    looks = "every draft is audited" if summary["doubt"] >= alarm.reset_at else "more drafts are audited"
    causes = ", ".join(f"{count:,} {cause}" for cause, count in sorted(summary["forfeits"].items()))
    return (
        f"A drift could hide behind audits without a verdict, so they count as lost and {looks} until verdicts come "
        f"again; nothing that was learned is forgotten. Check the expert and the grader (given up so far: {causes})."
    )


def _unconfirmed_verdict(settings: Settings, certificate: Certificate, served: str, closed: str) -> Verdict:
    """While the certificate is above the limit: safe if the bets say so, each threshold in force being certified."""
    detail = _unconfirmed(settings, certificate) + closed
    if not _certifies_thresholds(settings):
        return Verdict("watch", f"Not confirmed: {served}", detail)
    certain = f"expected loss ≤ {percent(settings.epsilon)} with {percent(1.0 - settings.alpha)} confidence"
    checked = bound_percent(certificate.average_upper, "upper", settings.epsilon)
    return Verdict("safe", f"Safe: {certain}; confirmed by checks so far: served loss ≤ {checked}", detail)


def _certifies_thresholds(settings: Settings) -> bool:
    """Whether no threshold is in force that the bets have not certified for traffic as it is."""
    return settings.exploration.floor > 0.0 and not isinstance(settings.policy, Fixed | Naive | Budget | Offline)


def promise(settings: Settings) -> str:
    """What a policy promises, in one sentence (MATH sections 2 to 7)."""
    sure, limit = f"with probability at least {percent(1.0 - settings.alpha)}", percent(settings.epsilon)
    policy = settings.policy
    if isinstance(policy, Fixed | Naive):
        return "This policy makes no promise."
    if isinstance(policy, Budget):
        return f"Promised: {sure}, the average loss really served never exceeds {limit}, whatever the traffic."
    if isinstance(policy, Offline):
        return (
            f"Promised: {sure}, the threshold that the calibration chooses loses at most {limit} on average, as long "
            "as traffic stays as it was then."
        )
    prior = isinstance(policy, Paper) and isinstance(policy.rule, PriorThreshold)
    if prior or (isinstance(policy, Portfolio) and policy.assume == "any"):
        return (
            f"Promised: {sure}, at no time has the threshold in force an expected loss above {limit} on "
            f"{'an average weighted by its bets' if prior else 'average'} over the rounds so far, whatever the traffic."
        )
    within = ""
    if policy.alarm is not None:
        within = " within an epoch"
        sure += " in each epoch anew" if settings.alpha_epochs == "each" else ", over all epochs together"
    return (
        f"Promised: {sure}, no threshold is ever in force whose expected loss exceeds {limit}, as long as traffic "
        f"keeps its distribution{within}."
    )


def _broken(settings: Settings) -> str:
    chance, policy = percent(settings.alpha), settings.policy
    if isinstance(policy, Fixed | Naive):
        return promise(settings)
    if isinstance(policy, Budget):
        why = f"This may happen in {chance} of all games, and in this one it did."
    else:
        why = f"Traffic has changed and the threshold was slow to follow, or this is one of the {chance} that fail."
    return f'{why} policy = "always" serves only the expert; policy = "budget" watches what is really served.'


def _unconfirmed(settings: Settings, certificate: Certificate) -> str:
    if not settings.exploration.floor:
        return f"Of the drafts that are kept none is ever checked, so each counts as a loss of 1. {promise(settings)}"
    rounds = math.ceil(certificate.upper / settings.epsilon)
    return (
        "The checks alone cannot confirm the limit yet, which does not mean that it is exceeded: the certificate is "
        "loose early and counts open rounds as losses. As things stand it can confirm the limit after "
        f"{rounds:,} rounds. {promise(settings)}"
    )
