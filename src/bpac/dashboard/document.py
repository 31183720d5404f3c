"""The JSON document that the page reads; ``assets/types.js`` describes its fields for the scripts."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bpac.dashboard.estimates.clean_rounds import clean_rounds_needed
from bpac.dashboard.estimates.wealth import wealth_curve
from bpac.dashboard.estimates.what_if import what_if
from bpac.dashboard.history.history import History
from bpac.dashboard.remedies import FORFEITED, UNSCORED, refusal_remedies_of, remedies_of
from bpac.dashboard.savings import TokenSavings
from bpac.dashboard.state import state_of
from bpac.dashboard.verdict import verdict
from bpac.routing.journal.units import Unit
from bpac.routing.policies import POLICIES, Policy
from bpac.routing.router import Router
from bpac.routing.switching import switch_verdict

VERSION = 1
# Events of a game in a short document.
FEW_EVENTS = 5


@dataclass(frozen=True, slots=True)
class Subject:
    """What a document says about a game besides its router and history.

    Parameters
    ----------
    route, segment: the route, and the part of its traffic (default: empty, not divided).
    game: number of the game (default: 1).
    score, loss: names of the score and of the loss (default: None, unknown).
    savings: tokens and money used and saved: ``draft_tokens``, ``expert_tokens``, ``judge_tokens``, ``always_tokens``,
        ``tokens_saved`` and, where known, bounds and money (default: None, not counted).
    latency: the latency of each stage of a request (default: empty, not measured).
    unscored_cost: estimated tokens that requests without a score would have saved (default: 0).
    unit: what a round is: a ``request``, or an ``episode``, where sessions are sticky (default: a request).
    sessions: how many sessions are open and were forgotten, where they are sticky (default: None).
    about: on a route whose callers ask their models themselves, what its rounds are about in the operator's words,
        perhaps empty (default: None, the gateway asks the models).
    stages: for each model of a cascade, how often it was asked and answered (default: empty, no cascade).
    """

    route: str
    segment: str = ""
    game: int = 1
    score: str | None = None
    loss: str | None = None
    savings: TokenSavings | None = None
    latency: Sequence[Mapping[str, Any]] = ()
    unscored_cost: float = 0.0
    stages: Sequence[Mapping[str, Any]] = ()
    unit: Unit = "request"
    sessions: Mapping[str, Any] | None = None
    about: str | None = None


def game_document(subject: Subject, router: Router, history: History, *, short: bool = False) -> dict[str, Any]:
    """The document of one game.

    Parameters
    ----------
    subject: the names and measurements that the router does not know.
    router: the router of the game.
    history: the history of the game, with every entry that the router has seen.
    short: whether to leave out the data of the charts (default: false).

    >>> game = game_document(Subject("homework"), Router(epsilon=0.05, seed=1), History())
    >>> game["verdict"]["level"], game["clean_rounds_needed"]
    ('warming', 92)
    """
    summary, settings = router.summary(), router.settings
    needed = clean_rounds_needed(router)
    alarm = settings.policy.alarm
    refusals = history.refusals.report(summary.refused, summary.expert_calls)
    document: dict[str, Any] = {
        "game": subject.game,
        "route": subject.route,
        "segment": subject.segment,
        "memory": getattr(settings.policy, "memory", None),
        "explore": settings.explore,
        "score": subject.score,
        "scores": [score._asdict() for score in router.scores()],
        "loss": subject.loss,
        **summary.to_json(),
        "policy": policy_name(settings.policy),
        "alarm": {
            "level": summary.alarm, "limit": alarm.reset_at, "careful": alarm.careful_at
        } if alarm else None,
        "state": state_of(router, history, summary),
        "unscored": history.unscored.report(router.step).to_json(),
        "unscored_cost": subject.unscored_cost,
        "refusals": refusals.to_json(),
        "remedies": remedies_of(history.unscored.reasons, UNSCORED) | remedies_of(summary.forfeits, FORFEITED)
        | refusal_remedies_of(refusals.reasons),
        "savings": None if subject.savings is None else subject.savings.to_json(),
        "verdict": verdict(router, history, needed, subject.unit)._asdict(),
        "switch": None if history.switch is None else switch_verdict(router, history.switch).to_json(),
        "unit": subject.unit,
        "sessions": None if subject.sessions is None else dict(subject.sessions),
        "about": subject.about,
        "clean_rounds_needed": needed,
        "events": history.events()[-FEW_EVENTS if short else 0 :],
        "latency": [dict(stage) for stage in subject.latency],
        "stages": [dict(stage) for stage in subject.stages],
        "series": None, "wealth": None, "uncertainty": None, "what_if": None,
    }  # fmt: skip
    if not short:
        document |= {
            "series": history.series(router, subject.savings),
            "wealth": wealth_curve(router),
            "uncertainty": history.uncertainty(),
            "what_if": what_if(router, history),
        }
    return document


def whole_document(games: Iterable[Mapping[str, Any]], *, title: str, live: bool, generated: float) -> dict[str, Any]:
    """The document of a page.

    Parameters
    ----------
    games: documents from ``game_document``.
    title: title of the page.
    live: whether it comes from a running gateway, from which the page can load more.
    generated: time of the document, in seconds since 1970.
    """
    return {"version": VERSION, "live": live, "generated": generated, "title": title, "games": list(games)}


def policy_name(policy: Policy) -> str:
    """The name under which a policy is configured.

    >>> policy_name(POLICIES["never"]), policy_name(POLICIES["paper-prior"])
    ('never', 'paper-prior')
    """
    return next((name for name, ready in POLICIES.items() if ready == policy), type(policy).__name__.lower())
