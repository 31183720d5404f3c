"""Troubles of a gateway that an operator should see at once: what, since when, how often, what it costs, what to do."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from bpac.dashboard.history.history import History
from bpac.dashboard.history.refusals import NOT_RECORDED
from bpac.dashboard.remedies import UNSCORED, UPSTREAM, refusal_remedies_of, remedies_of
from bpac.dashboard.words import percent

# From this share of the latest requests on, requests without a score are a trouble of their route.
MUCH_UNSCORED = 0.1
# From this share of the latest expert calls on, refusals are a trouble of their route.
MUCH_REFUSED = 0.1
# Refusals may have many reasons; this many have their remedies in a trouble.
MOST_REMEDIES = 3
# What refusals cost.
REFUSALS_COST = (
    "callers get the refusal unless their draft was accepted, and these drafts cannot be graded, so the threshold "
    "rises more slowly"
)


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something that an operator should repair.

    Parameters
    ----------
    what: what happened, in one sentence without a full stop.
    since: when it began, in seconds since 1970; None if unknown.
    count: how often it happened.
    remedy: what to do.
    cost: what it costs while it lasts; empty if nothing can be said.
    """

    what: str
    since: float | None
    count: int
    remedy: str
    cost: str = ""

    def to_json(self) -> dict[str, Any]:
        """The same as JSON values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class ScoredGame:
    """What the troubles of a game follow from.

    Parameters
    ----------
    route: the name of its route.
    rounds: the number of requests that were decided.
    history: its history.
    tokens_saved: computes the tokens saved so far.
    wrong_scores: what is wrong with its scores, what that costs and what to do (default: None, nothing).
    """

    route: str
    rounds: int
    history: History
    tokens_saved: Callable[[], float]
    wrong_scores: tuple[str, str, str] | None = None


def unscored_troubles(games: Iterable[ScoredGame]) -> list[Trouble]:
    """Routes in which many of the latest requests have no score; the games of a route are counted together.

    >>> history = History()
    >>> history.unscored.withdrawn("no-score")
    >>> (trouble,) = unscored_troubles([ScoredGame("homework", 0, history, lambda: 0.0)])
    >>> trouble.what
    'route homework is not routing: no draft could be scored (1 × no-score)'
    """
    found = []
    for route, members in _by_route(games):
        affected = [game for game in members if _lacks_scores(game)]
        if not affected:
            continue
        reasons: Counter[str] = sum((game.history.unscored.reasons for game in affected), Counter())
        stopped = [game for game in affected if game.history.unscored.only(game.rounds)]
        causes = ", ".join(f"{count:,} × {reason}" for reason, count in reasons.most_common())
        where = "" if len(members) == 1 else f" in {len(affected):,} of {len(members):,} segments"
        if stopped:
            what = f"route {route} is not routing{where}: no draft could be scored ({causes})"
        else:
            share = max(game.history.unscored.recent for game in affected)
            what = f"route {route}: {percent(round(share, 2))} of the latest requests{where} have no score ({causes})"
        remedies = remedies_of((reason for reason, _ in reasons.most_common()), UNSCORED).values()
        began = [game.history.unscored.since for game in affected if game.history.unscored.since]
        found.append(Trouble(what, min(began, default=None), reasons.total(), "; ".join(remedies), _cost(affected)))
    return found


def refusal_troubles(games: Iterable[ScoredGame]) -> list[Trouble]:
    """Routes in which the expert refused many of the latest requests; the games of a route are counted together."""
    found = []
    for route, members in _by_route(games):
        affected = [game.history.refusals for game in members if much_refused(game.history)]
        if not affected:
            continue
        reasons: Counter[str] = sum((refusals.reasons for refusals in affected), Counter())
        share = max(refusals.recent for refusals in affected)
        where = "" if len(members) == 1 else f" in {len(affected):,} of {len(members):,} segments"
        what = f"route {route}: the expert refused {percent(round(share, 2))} of the latest requests sent to it{where}"
        began = [refusals.since for refusals in affected if refusals.since]
        remedy = refusal_remedies(reasons)
        since = min(began, default=None)
        found.append(Trouble(what + counted_reasons(reasons), since, reasons.total(), remedy, REFUSALS_COST))
    return found


def much_refused(history: History) -> bool:
    """Whether the expert refused many of the latest requests of a game."""
    return history.refusals.recent >= MUCH_REFUSED


def counted_reasons(reasons: Mapping[str, int]) -> str:
    """Reasons with their numbers, the most frequent first, in brackets; empty if there are none.

    >>> counted_reasons({"400": 1, "400: it names tools": 1200})
    ' (1,200 × 400: it names tools; 1 × 400)'
    """
    texts = [f"{count:,} × {reason}" for reason, count in Counter(reasons).most_common()]
    return f" ({'; '.join(texts)})" if texts else ""


def refusal_remedies(reasons: Mapping[str, int]) -> str:
    """What to do about refusals, by the most frequent reasons."""
    most = [reason for reason, _ in Counter(reasons).most_common(MOST_REMEDIES)] or [NOT_RECORDED]
    return "; ".join(dict.fromkeys(refusal_remedies_of(most).values()))


def score_troubles(games: Iterable[ScoredGame]) -> list[Trouble]:
    """Routes whose scores cannot be right; the games of a route are counted together, by what is wrong."""
    found = []
    for route, members in _by_route(games):
        wrong: dict[tuple[str, str, str], int] = Counter(game.wrong_scores for game in members if game.wrong_scores)
        for (what, cost, remedy), count in wrong.items():
            where = "" if len(members) == 1 else f" in {count:,} of {len(members):,} segments"
            found.append(Trouble(f"route {route}{where}: {what}", None, count, remedy, cost))
    return found


def model_troubles(models: Mapping[str, Mapping[str, Any]], routes: Mapping[str, Iterable[str]]) -> list[Trouble]:
    """Models whose server does not answer as it should.

    Parameters
    ----------
    models: by name, ``health`` as in ``/v1/status``: ``ok``, which is None if it is not known, ``error``, ``since``,
        ``failures`` and, where known, ``kinds``: their number by ``kind`` and ``status``.
    routes: for each model, the routes that use it.

    >>> health = {"ok": False, "error": None, "since": 5.0, "failures": 3,
    ...           "kinds": [{"kind": "credentials", "status": 401, "count": 3}]}
    >>> (trouble,) = model_troubles({"large": {"health": health}}, {"large": ["homework"]})
    >>> trouble.what, trouble.cost
    ('model large fails: 3 × credentials (status 401)', 'used by: homework')
    """
    found = []
    for name, model in models.items():
        health = model.get("health") or {}
        ok, failures, kinds = health.get("ok"), health.get("failures") or 0, health.get("kinds") or []
        if ok or (ok is None and not failures):
            continue
        counted = ", ".join(f"{one['count']:,} × {one['kind']}{_status(one.get('status'))}" for one in kinds)
        latest = health.get("last") or {}
        # The remedy has a place of its own.
        error = (health.get("error") or "").removesuffix(f": {latest.get('remedy')}")
        details = "; ".join(text for text in (error, counted) if text)
        what = f"model {name} fails: {details}" if details else f"model {name} fails"
        # The last failure tells best what to do now; kinds that differ only by their status have one remedy.
        names = [latest.get("kind"), *(one["kind"] for one in kinds)]
        remedies = dict.fromkeys(UPSTREAM[kind] for kind in names if kind in UPSTREAM)
        remedy = "; ".join(remedies) or "check the health of its server, its settings and the gateway's log"
        used = ", ".join(routes.get(name, ()))
        found.append(Trouble(what, health.get("since"), failures, remedy, f"used by: {used}" if used else ""))
    return found


def _status(status: int | None) -> str:
    return "" if status is None else f" (status {status})"


def store_trouble(store: Mapping[str, Any]) -> Trouble:
    """The store cannot be written.

    Parameters
    ----------
    store: what is known about it, as in ``/v1/status``: ``error``, ``remedy``, ``since``, ``failures``; and ``cost``,
        unless no request is answered.
    """
    cost = store.get("cost") or "no request is answered, because nothing can be decided without the journal"
    return Trouble(f"the store has failed: {store['error']}", store["since"], store["failures"], store["remedy"], cost)


def warning_trouble(warning: Mapping[str, Any]) -> Trouble:
    """A setting of a route that does not suit its traffic.

    Parameters
    ----------
    warning: as in ``/v1/status``: ``route``, ``what``, ``since``, ``count``, ``cost``, ``remedy``.
    """
    what = f"route {warning['route']}: {warning['what']}"
    return Trouble(what, warning["since"], warning["count"], warning["remedy"], warning["cost"])


def upkeep_trouble(work: Mapping[str, Any]) -> Trouble:
    """Work of the gateway beside its requests that fails.

    Parameters
    ----------
    work: as in ``/v1/status``: ``what``, ``since``, ``count``, ``cost``, ``remedy``.
    """
    return Trouble(work["what"], work["since"], work["count"], work["remedy"], work["cost"])


def reload_trouble(failure: Mapping[str, Any]) -> Trouble:
    """A configuration that could not be used.

    Parameters
    ----------
    failure: ``failed_reload`` as in ``/v1/status``: ``since`` and ``error``.
    """
    what = f"the configuration was not reloaded: {failure['error']}"
    return Trouble(what, failure["since"], 1, "correct the file, and reload again", "the old one stays in use")


def _lacks_scores(game: ScoredGame) -> bool:
    unscored = game.history.unscored
    return unscored.only(game.rounds) or unscored.recent >= MUCH_UNSCORED


def _cost(games: Iterable[ScoredGame]) -> str:
    """What requests without a score have cost: the expert answers them, so they save nothing."""
    missed = sum(
        missed_tokens(game.rounds, game.tokens_saved(), game.history.unscored.reasons.total()) for game in games
    )
    paid = "the expert answers these requests, so they save nothing"
    return f"{paid}: about {missed:,.0f} tokens more than with scores so far" if missed >= 1.0 else paid


def missed_tokens(rounds: int, tokens_saved: float, unscored: int) -> float:
    """Tokens that requests without a score would have saved, if they had saved as many as the others on average."""
    return max(0.0, tokens_saved / rounds * unscored) if rounds else 0.0


def _by_route(games: Iterable[ScoredGame]) -> list[tuple[str, list[ScoredGame]]]:
    routes: dict[str, list[ScoredGame]] = {}
    for game in games:
        routes.setdefault(game.route, []).append(game)
    return list(routes.items())
