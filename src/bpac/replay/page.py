"""A replay as a web page: the first run of a table, shown as the gateway's dashboard shows a live game."""

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bpac.dashboard.decisions import DecisionView
from bpac.dashboard.document import Subject, game_document, whole_document
from bpac.dashboard.history.history import History
from bpac.dashboard.page import replay_page
from bpac.dashboard.savings import TokenSavings
from bpac.output_files import whole_file
from bpac.replay.metrics import ReplayPath
from bpac.replay.replay import Replay
from bpac.replay.router_factory import RouterFactory
from bpac.replay.tables.table import Table
from bpac.routing.coins import Coins
from bpac.routing.decision import Decision
from bpac.routing.journal.entries import Entry, Resolved
from bpac.routing.router import Router

# Number of decisions on the page: the last ones.
MOST_DECISIONS = 200
GAME = 1


class RouterRecorder:
    """Makes a router, and records from its journal what the page shows.

    An entry is written to the journal before it takes effect, so that each is recorded when the next one is written.

    Parameters
    ----------
    make_router: makes the router.
    """

    def __init__(self, make_router: RouterFactory) -> None:
        self._make_router = make_router
        self.router: Router
        self.history = History()
        # The last decisions and their outcomes, by step.
        self.latest: dict[int, tuple[Decision, Resolved | None]] = {}
        self._owed: dict[int, Decision] = {}
        self._pending: Entry | None = None

    def __call__(self, coins: Coins) -> Router:
        """A fresh router, which is recorded from now on."""
        self.router = self._make_router(coins, self._written)
        return self.router

    def finish(self) -> None:
        """Record the last entry."""
        self._written(None)

    def _written(self, entry: Entry | None) -> None:
        done, self._pending = self._pending, entry
        if isinstance(done, Decision):
            self.history.decided(done, 0.0, self.router)
            self.latest[done.step] = done, None
            if len(self.latest) > MOST_DECISIONS:
                del self.latest[next(iter(self.latest))]
            if done.call_expert:
                self._owed[done.step] = done
        elif isinstance(done, Resolved):
            decision = self._owed.pop(done.step)
            self.history.resolved(decision, done.loss)
            if done.step in self.latest:
                self.latest[done.step] = decision, done


def write_page(replay: Replay, make_router: RouterFactory, path: Path, *, name: str, score: str) -> None:
    """Replay the first run and write its page; an existing file is replaced.

    Parameters
    ----------
    replay: the replay.
    make_router: makes its routers.
    path: the file to write.
    name: name of the table.
    score: the column with the uncertainty.
    """
    page = replay_page(replay_document(replay, make_router, name=name, score=score, generated=time.time()))
    with whole_file(path) as unfinished:
        unfinished.write_text(page, encoding="utf-8")


def replay_document(
    replay: Replay, make_router: RouterFactory, *, name: str, score: str, generated: float
) -> dict[str, Any]:
    """The dashboard's document of the first run of a replay, as JSON values.

    It contains what a gateway cannot know: the actual loss, and the tokens of every answer.

    Parameters
    ----------
    replay: the replay.
    make_router: makes its routers.
    name: name of the table.
    score: the column with the uncertainty.
    generated: time of writing, in seconds since 1970.
    """
    recorder = RouterRecorder(make_router)
    table, path = replace(replay, make_router=recorder).run(0)
    recorder.finish()
    tokens = _tokens(table, path)
    subject = Subject(name, game=GAME, score=score, savings=_savings(tokens))
    game = game_document(subject, recorder.router, recorder.history)
    series = game["series"]
    at = np.array(series["step"], dtype=int) - 1
    served = np.cumsum(table.loss * path.serve_draft)
    series["served_loss"] = (served[at] / (at + 1)).tolist()
    game["served_loss"] = float(served[-1]) / len(table)
    if tokens:
        series["spent_tokens"] = (tokens["draft"] + tokens["expert"])[at].tolist()
        series["always_tokens"] = tokens["always"][at].tolist()
    shown = f"run 1 of {replay.runs}" if replay.runs > 1 else "one run"
    title = f"Replay of {name}: {shown}, rows {replay.order}, seed {replay.seed}"
    document = whole_document([game], title=title, live=False, generated=generated)
    owed = {decision.step for decision in recorder.router.owed}
    decisions = [
        _view(table, decision, outcome, step in owed).document(f"round-{step}", GAME, name, "")
        for step, (decision, outcome) in reversed(recorder.latest.items())
    ]
    return document | {"decisions": decisions}


def _tokens(table: Table, path: ReplayPath) -> dict[str, np.ndarray[Any, np.dtype[np.float64]]]:
    """Tokens so far after each step; empty if the table has no tokens."""
    if table.draft_tokens is None or table.expert_tokens is None:
        return {}
    return {
        "draft": np.cumsum(table.draft_tokens),
        "expert": np.cumsum(np.where(path.call_expert, table.expert_tokens, 0.0)),
        "always": np.cumsum(table.expert_tokens),
    }


def _savings(tokens: Mapping[str, Any]) -> TokenSavings | None:
    if not tokens:
        return None
    draft, expert, always = (float(tokens[kind][-1]) for kind in ("draft", "expert", "always"))
    return TokenSavings(
        draft_tokens=draft,
        expert_tokens=expert,
        judge_tokens=0.0,
        always_tokens=always,
        tokens_saved=always - draft - expert,
    )


def _view(table: Table, decision: Decision, outcome: Resolved | None, owed: bool) -> DecisionView:
    """A decision with the tokens of its row."""
    row = decision.step - 1
    if table.draft_tokens is None or table.expert_tokens is None:
        return DecisionView(decision, outcome, owed)
    draft, expert = float(table.draft_tokens[row]), float(table.expert_tokens[row])
    return DecisionView(
        decision, outcome, owed, {"draft_tokens": draft}, {"expert_tokens": expert} if decision.call_expert else {}
    )
