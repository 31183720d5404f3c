"""The effort dial in the demo: its losses and its report, from answers that are known."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from bpac.answer import Answer
from bpac.benchmarks.benchmark import Question
from bpac.dashboard.history.history import History
from bpac.demo.client import ServedAnswer
from bpac.demo.dial import DialSession, DialTruth, dial_truth
from bpac.demo.directory import DIAL, DemoDirectory
from bpac.demo.ground_truth import Answers
from bpac.demo.pair import ModelPair, PairModel
from bpac.gateway.config.file import load_config
from bpac.gateway.games.money.savings import Savings
from bpac.gateway.games.shown.status import GameStatus, game_status
from bpac.stores.store import Game

PAIR = ModelPair("local", {"draft": PairModel("http://a/v1", "m"), "expert": PairModel("http://a/v1", "m")}, ())
SAID = {
    "effort-none": ("1", "0", "0", "1"),
    "effort-low": ("1", "1", "0", "1"),
    "effort-high": ("1", "1", "1", "1"),
}
BY = ("effort-none", "effort-none", "effort-low", "effort-high")


@pytest.fixture
def session(tmp_path: Path) -> DialSession:
    """Four questions that the dial answered: one of two without thinking right, one with short thinking wrong."""
    directory = DemoDirectory(tmp_path)
    directory.write_config(PAIR, 8123)
    questions = [Question(str(number), f"{number}?", "1") for number in range(4)]
    served = [
        ServedAnswer(question, step, "expert" if by == "effort-high" else "draft", Answer(SAID[by][step - 1]), by)
        for step, (question, by) in enumerate(zip(questions, BY, strict=True), start=1)
    ]
    return DialSession(4, load_config(directory.config).routes[DIAL], served, began=0.0, ended=2.0)


@pytest.fixture
def game(session: DialSession) -> GameStatus:
    """The status of the dial's game before its first round."""
    names = [model.name for model in session.route.models]
    stored = Game(2, DIAL, "", "terms")
    return game_status(stored, session.route.new_router(), History(), Savings().report(), models=names)


def truth_of(session: DialSession) -> DialTruth:
    """The actual losses; what the pair said is known, and what it did not say is asked of no server."""
    known: Answers = {}
    for number, one in enumerate(session.served):
        known[one.question, "draft"] = Answer(SAID["effort-none"][number])
        known[one.question, "expert"] = Answer(SAID["effort-high"][number])
    requested: list[tuple[str, str]] = []

    async def low(_client: object, _name: str, body: object, question: Question) -> Answer:
        requested.append((str(body), question.id))
        return Answer(SAID["effort-low"][int(question.id)])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bpac.demo.ground_truth.ask_model", low)
        found = asyncio.run(dial_truth(PAIR, session.served, known, session.route, lambda done, total: None))
    # Only short thinking is asked, and not where it has answered.
    assert sorted(number for _, number in requested) == ["0", "1", "3"]
    assert {"low" in body for body, _ in requested} == {True}
    return found


def test_losses_are_those_of_the_effort_that_answered(session: DialSession) -> None:
    """Each served answer is compared with that of the last effort, whose own loss is 0."""
    assert truth_of(session) == DialTruth(2 / 4, {"effort-none": 2 / 4, "effort-low": 1 / 4})


def test_the_report_says_which_effort_answered_how_often(session: DialSession, game: GameStatus) -> None:
    """With the actual loss beside the limit; and it says so where the demo was stopped before that was known."""
    stopped = session.report(game)
    assert not stopped.complete
    assert "stopped before" in stopped.lines()[-1]
    session.truth = truth_of(session)
    report = session.report(game)
    assert report.complete
    lines = report.lines()
    assert "4 questions in 2 s, ε = 0.05" in lines[0]
    assert lines[1:4] == [
        "  effort-none    50.0%      2 of 4 answers",
        "  effort-low     25.0%      1 of 4 answers",
        "  effort-high    25.0%      1 of 4 answers",
    ]
    assert lines[-1] == (
        "  actual loss    50.00%     limit: 5.00%; always effort-none: 50.00%; always effort-low: 25.00%"
    )
    values = report.to_json()
    assert values["answered"] == {"effort-none": 2, "effort-low": 1, "effort-high": 1}
    assert values["truth"]["served_loss"] == 0.5
    nothing = replace(report, questions=0, truth=None)
    assert nothing.lines() == ["The effort dial was sent no question: the demo was stopped before."]
    assert not nothing.complete
    rows, line = session.table(game)
    assert rows[0] == "  questions      4          of 4, to the effort dial"
    assert line == "4 of 4, to the effort dial: effort-none 2, effort-low 1, effort-high 1"
