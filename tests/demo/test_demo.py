import subprocess
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest

from bpac.collecting.answers_file import ROLES
from bpac.demo.demo import Demo
from bpac.demo.pair import NAMES
from bpac.demo.scripted import scripted_questions, scripted_reply
from bpac.local.benchmark import COUNT
from bpac.testing import Request
from tests.demo.running import PROGRAM, json_of, said, status_of
from tests.gateway.configured import free_port

QUESTIONS, LOCAL = 150, 100


class Finished(NamedTuple):
    """A demo that ended by itself: where, and what it printed."""

    place: Path
    report: dict[str, Any]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """One with the scripted pair."""
    place = tmp_path_factory.mktemp("demo")
    arguments = ("--once", "--scripted", "--questions", QUESTIONS, "--dir", place, "--port", free_port(), "--json")
    ran = subprocess.run([PROGRAM, "demo", *map(str, arguments)], capture_output=True, text=True, check=True)
    assert f"dashboard: {json_of(ran.stdout)['dashboard']}" in ran.stderr.splitlines()[0]
    return Finished(place, json_of(ran.stdout))


def test_it_says_what_its_journal_says(finished: Finished, capsys: pytest.CaptureFixture[str]) -> None:
    """Its numbers are those of ``bpac status`` on the files it leaves, and every question was a round."""
    game = status_of(finished.place, capsys)
    assert finished.report["game"] == game
    assert finished.report["questions"] == game["steps"] == QUESTIONS
    assert finished.report["complete"]
    assert (game["owed"], game["forfeits"]) == (0, {})


def test_its_journal_is_audited(finished: Finished, capsys: pytest.CaptureFixture[str]) -> None:
    """What it leaves can be exported, and the promise checked from the export alone."""
    journal = finished.place / "journal.jsonl"
    said(capsys, "export", finished.place / "gateway.toml", "--out", journal)
    audit = json_of(said(capsys, "audit", journal, "--json"))
    assert (audit["rounds"], audit["differences"]) == (QUESTIONS, [])
    assert audit["claims"] >= 1


def test_it_finds_out_the_truth(finished: Finished) -> None:
    """Losses, right answers and tokens are those of the script, computed here without any server."""
    truth, game = finished.report["truth"], finished.report["game"]
    rng, pool = Random(0), scripted_questions(COUNT, seed=0)
    asked = list(islice(iter(lambda: rng.choice(pool), None), QUESTIONS))
    replies = {
        role: [
            scripted_reply(Request(1, {"model": NAMES[role], "messages": [{"content": q.prompt}]}), NAMES["draft"])
            for q in asked
        ]
        for role in ROLES
    }
    texts = {role: [reply.text for reply in replies[role]] for role in ROLES}
    lost = sum(draft != expert for draft, expert in zip(texts["draft"], texts["expert"], strict=True))
    assert truth["draft_loss"] == pytest.approx(lost / QUESTIONS)
    for role in ROLES:
        right = sum(text == question.reference for text, question in zip(texts[role], asked, strict=True))
        assert truth[f"{role}_right"] == pytest.approx(right / QUESTIONS)
    words = sum(len(reply.reasoning.split()) + len(reply.answer_tokens()) for reply in replies["expert"])
    assert truth["expert_tokens"] == words
    # What was saved is what was not spent, and the gateway's journal knows what was spent.
    spent = game["savings"]["draft_tokens"] + game["savings"]["expert_tokens"]
    assert truth["tokens_saved"] == words - spent
    assert 0.0 <= truth["served_loss"] <= truth["draft_loss"]
    assert 0 < lost < QUESTIONS


def test_it_leaves_a_picture(finished: Finished) -> None:
    """Beside the configuration, the journal and the log."""
    for name in ("picture", "config", "store", "log"):
        assert Path(finished.report[name]).parent == finished.place
    assert Path(finished.report["picture"]).read_bytes().startswith(b"\x89PNG")
    assert "Uvicorn running" in Path(finished.report["log"]).read_text()


def test_the_local_pair(tmp_path: Path) -> None:
    """The real model answers behind the gateway; thinking is right more often, and what is served is in between."""
    report = Demo(tmp_path / "demo", questions=LOCAL, once=True, port=free_port()).run()
    truth = report.truth
    assert (report.pair, report.instead_because, report.complete) == ("local", None, True)
    assert report.game.summary.steps == LOCAL
    assert truth is not None
    assert truth.expert_right >= truth.draft_right + 0.1
    assert truth.expert_right >= 0.9
    # Where the expert was asked, its answer was served.
    assert truth.served_right >= truth.expert_right - truth.served_loss
    assert sum(truth.losses.values()) == pytest.approx(LOCAL * truth.served_loss)
    assert sorted(truth.losses) == list(range(1, LOCAL + 1))
    text = str(report)
    assert f"The local pair behind the gateway: {LOCAL} questions" in text
    assert f"status {tmp_path}/demo/gateway.toml" in text


def test_a_scripted_pair_takes_the_place_of_weights_that_are_not_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The demo says so and goes on."""
    demo = Demo(tmp_path / "demo", questions=20, once=True, port=free_port(), model=tmp_path / "missing.gguf")
    report = demo.run()
    assert (report.pair, report.questions, report.complete) == ("scripted", 20, True)
    assert "missing.gguf" in (report.instead_because or "")
    assert "the local pair cannot run (there is no model file" in capsys.readouterr().err
