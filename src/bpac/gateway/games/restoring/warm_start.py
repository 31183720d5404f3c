"""Warm starts of a gateway's games: a new game that has learned from history before its first request.

1. History comes before the first decision, so a warm start always begins a new game, with a promise of its own.
2. A table of labelled requests counts as rounds in which every query went to the expert. An older game counts round by
   round, as it was decided, and only if it has the same models, score and loss: otherwise its losses are about
   something else.
3. What is fed counts once. A game that was started from history is not fed again.
4. In a game that asks whether a model may replace another, every draft has the score 0, and so has history: with other
   scores its losses would not count below them.
5. A promise about the running average over all rounds of a game would be diluted by history, so such policies get none.
"""

import time
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from bpac.errors import InputError
from bpac.gateway.config.routes.routes import RouteSettings
from bpac.gateway.games.restoring.recorded_scores import with_recorded_score
from bpac.gateway.games.restoring.restoring import folded, has_entries
from bpac.gateway.games.segment_names import normalized
from bpac.gateway.games.segments import alpha_of_games
from bpac.gateway.games.terms import changes, of_rounds, terms_of
from bpac.routing.journal.entries import Entry
from bpac.routing.policies import Budget, Fixed, Portfolio
from bpac.routing.router import Router
from bpac.routing.segments import OTHERS
from bpac.stores import SqliteStore
from bpac.stores.store import Game

SAME_TRAFFIC = "the requests to come are drawn from the same distribution as the history"
EACH_ONCE = "no request is in the table twice, and none was chosen or left out because of its uncertainty or its loss"
SAME_TERMS = "uncertainty and loss of each row come from the draft, expert, score and loss of this route"
CHOSEN_BEFORE = "epsilon, alpha and policy were chosen without looking at the losses in the history"


class LabelledHistory(NamedTuple):
    """What a game starts from; exactly one of ``rows`` and ``entries`` is given.

    Parameters
    ----------
    source: where it comes from, for the journal and for messages.
    rows: uncertainty and loss of every row of a table.
    entries: the whole journal of an older game.
    terms: the terms of the older game, as JSON text; empty if they are not known.
    """

    source: str
    rows: Sequence[tuple[float, float]] | None = None
    entries: Iterable[Entry] | None = None
    terms: str = ""


class WarmStart(NamedTuple):
    """A game that was started from history.

    Parameters
    ----------
    game: the new game.
    rows: how many rounds of history it has learned from.
    threshold: with which it starts.
    assumes: what the promise assumes from now on, in addition to what it always assumes.
    """

    game: Game
    rows: int
    threshold: float
    assumes: list[str]


def warm_start(
    store: SqliteStore, route: RouteSettings, segment: str, history: LabelledHistory, *, new_game: bool = False
) -> WarmStart:
    """Begin a new game from history: the next gateway on this store goes on with it. If this raises, nothing changed.

    Parameters
    ----------
    store: opened with ``commit_each``; no gateway is using it.
    route: the settings of the route.
    segment: the segment; empty if the route is not divided.
    history: what it learns from.
    new_game: whether to do so although the current game has rounds or history, and ends with this (default: false).
    """
    segment = normalized(segment) if segment else ""
    _check_segment(store, route, segment)
    check_takes_history(route)
    route = with_recorded_score(store, route)
    alpha = alpha_of_games(route)
    terms = terms_of(route, route.new_router(alpha))
    if not new_game:
        _check_current(store, route, segment, terms)
    assumes = _check_history(history, terms)
    if route.is_switch:
        history = _equally_sure(history)
    if isinstance(route.new_router(alpha).settings.policy, Budget):
        assumes = ["nothing: with the policy budget, history only helps to choose the threshold"]
    with store.together():
        game = store.open_game(route.name, segment, terms)
        note = {"at": round(time.time(), 3), "history": history.source}
        router = route.new_router(alpha, lambda entry: store.append(game, entry, note))
        _feed(router, history)
        if not router.labelled:
            raise InputError(f"{history.source} has no round that could be learned from")
    return WarmStart(game, router.labelled, router.threshold, assumes)


def _equally_sure(history: LabelledHistory) -> LabelledHistory:
    """History for a game in which every draft has the score 0."""
    if history.rows is not None:
        return history._replace(rows=[(0.0, loss) for _, loss in history.rows])
    if not history.terms:
        raise InputError(
            f'{history.source} cannot be used: with score = "none" every draft has the score 0, and the journal does '
            "not say by which score it was decided: give a table of labelled requests instead"
        )
    return history


def _feed(router: Router, history: LabelledHistory) -> None:
    if history.rows is not None:
        router.warm_start(history.rows)
    else:
        router.warm_start_from(history.entries or ())


def _check_segment(store: SqliteStore, route: RouteSettings, segment: str) -> None:
    if route.segment_by is None:
        if segment:
            raise InputError(f"--segment: the route {route.name} has no segment_by, so it has one game: leave it out")
        return
    there = {game.segment for game in store.games() if game.route == route.name and game.segment}
    if not segment:
        listed = ", ".join(sorted(there)) or "none yet"
        raise InputError(f"--segment is missing: the route {route.name} has a game for each segment ({listed})")
    if segment not in {OTHERS, *there} and len(there - {OTHERS}) >= route.most_segments - 1:
        raise InputError(
            f"--segment {segment}: the route {route.name} has as many games as most_segments = {route.most_segments} "
            f"allows, and this segment shares the game {OTHERS}: increase most_segments, or give --segment '{OTHERS}'"
        )


def check_takes_history(route: RouteSettings) -> None:
    """Raise ``InputError`` unless games of a route can start from history."""
    policy = route.new_router().settings.policy
    if isinstance(policy, Fixed):
        raise InputError(f"the policy {route.policy} learns nothing, so it cannot start from history")
    if (isinstance(policy, Portfolio) and policy.assume == "any") or route.policy == "paper-prior":
        raise InputError(
            f"the promise of {route.policy} without assumptions on the traffic is about the average over all rounds of "
            "the game, and history would count as rounds: it cannot start from history. The policies portfolio with "
            'assume = "iid", paper and budget can'
        )


def _check_current(store: SqliteStore, route: RouteSettings, segment: str, terms: str) -> None:
    lost = {loss.game for loss in store.losses()}
    for game in reversed(store.games()):
        if (game.route, game.segment) != (route.name, segment):
            continue
        if not changes(game.terms, terms, route.open_terms):
            if game.number in lost:
                return
            router = folded(store, game).router if has_entries(store, game) else None
            if router is not None and (router.step or router.labelled):
                has = f"{router.step} rounds" if router.step else f"{router.labelled} rounds of history"
                raise InputError(
                    f"game {game.number} has these terms and {has} already, and history comes before the first request "
                    "and counts once: --new-game ends this game and begins another one from the given history alone"
                )
            return


def _check_history(history: LabelledHistory, terms: str) -> list[str]:
    """What the promise assumes with this history, or ``InputError`` if it does not fit the route."""
    if history.rows is not None:
        return [SAME_TRAFFIC, EACH_ONCE, SAME_TERMS, CHOSEN_BEFORE]
    if not history.terms:
        return [SAME_TRAFFIC, SAME_TERMS, CHOSEN_BEFORE]
    differing = of_rounds(changes(history.terms, terms))
    if differing:
        raise InputError(
            f"{history.source} cannot be used: {'; '.join(map(str, differing))}. Its losses are those of other models, "
            "another score or another loss, so they say nothing about this route"
        )
    return [SAME_TRAFFIC, CHOSEN_BEFORE]
