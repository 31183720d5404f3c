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
from tests.demo.running import PROGRAM, json_of, output_of, status_of
from tests.once import made_once
from tests.ports import free_port

QUESTIONS, LOCAL = 150, 100


class FinishedDemo(NamedTuple):
    """A demo that ended by itself: its directory and its report."""

    directory: Path
    report: dict[str, Any]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> FinishedDemo:
    """A demo with the scripted pair."""
    return made_once("finished-demo", scripted_demo, tmp_path_factory, worker_id)


def scripted_demo(directory: Path) -> FinishedDemo:
    """A demo with the scripted pair, in a new directory."""
    arguments = ("--once", "--scripted", "--questions", QUESTIONS, "--dir", directory, "--port", free_port(), "--json")
    ran = subprocess.run([PROGRAM, "demo", *map(str, arguments)], capture_output=True, text=True, check=True)
    assert f"dashboard: {json_of(ran.stdout)['dashboard']}" in ran.stderr.splitlines()[0]
    return FinishedDemo(directory, json_of(ran.stdout))


def test_the_report_agrees_with_the_journal(finished: FinishedDemo, capsys: pytest.CaptureFixture[str]) -> None:
    """Its numbers are those of ``bpac status`` on the demo's files, and every question is a round."""
    game = status_of(finished.directory, capsys)
    assert finished.report["game"] == game
    assert finished.report["questions"] == game["steps"] == QUESTIONS
    assert finished.report["complete"]
    assert (game["owed"], game["forfeits"]) == (0, {})
    assert finished.report["dial"] is None  # scripted models have no efforts


def test_the_journal_passes_the_audit(
    finished: FinishedDemo, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The journal can be exported, and ``bpac audit`` finds no difference in the export."""
    journal = tmp_path / "journal.jsonl"
    output_of(capsys, "export", finished.directory / "gateway.toml", "--route", "demo", "--out", journal)
    audit = json_of(output_of(capsys, "audit", journal, "--json"))
    assert (audit["rounds"], audit["differences"]) == (QUESTIONS, [])
    assert audit["claims"] >= 1


def test_the_report_contains_the_actual_loss_and_savings(finished: FinishedDemo) -> None:
    """Losses, correct answers and tokens are those of the scripted models, computed here without a server."""
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
    # The tokens saved are those not spent, and the gateway's journal knows how many were spent.
    spent = game["savings"]["draft_tokens"] + game["savings"]["expert_tokens"]
    assert truth["tokens_saved"] == words - spent
    assert 0.0 <= truth["served_loss"] <= truth["draft_loss"]
    assert 0 < lost < QUESTIONS


def test_all_files_are_in_the_directory_of_the_demo(finished: FinishedDemo) -> None:
    """Figure, configuration, journal and log."""
    for name in ("picture", "config", "store", "log"):
        assert Path(finished.report[name]).parent == finished.directory
    assert Path(finished.report["picture"]).read_bytes().startswith(b"\x89PNG")
    assert "Uvicorn running" in Path(finished.report["log"]).read_text()


def test_the_demo_runs_with_the_local_model(tmp_path: Path) -> None:
    """The real model answers behind the gateway, is correct more often after thinking, and its losses add up.

    Then its effort dial answers a fifth as many questions; they are too few to certify a cheaper effort.
    """
    report = Demo(tmp_path / "demo", questions=LOCAL, once=True, port=free_port()).run()
    truth = report.truth
    assert (report.pair, report.instead_because, report.complete) == ("local", None, True)
    assert report.game.summary.steps == LOCAL
    assert truth is not None
    assert truth.expert_right >= truth.draft_right + 0.1
    assert truth.expert_right >= 0.9
    # Where the expert was called, its answer was served.
    assert truth.served_right >= truth.expert_right - truth.served_loss
    assert sum(truth.losses.values()) == pytest.approx(LOCAL * truth.served_loss)
    assert sorted(truth.losses) == list(range(1, LOCAL + 1))
    dial = report.dial
    assert dial is not None
    assert dial.truth is not None
    assert dial.answered == {"effort-none": 0, "effort-low": 0, "effort-high": LOCAL // 5}
    assert [stage["answered"] for stage in dial.game.stages] == list(dial.answered.values())
    assert dial.truth.served_loss == 0.0
    assert dial.truth.effort_losses["effort-none"] > dial.truth.effort_losses["effort-low"] > 0.0
    text = str(report)
    assert f'with reasoning_effort "auto": {LOCAL // 5} questions in' in text
    assert f"The local pair behind the gateway: {LOCAL} questions" in text
    assert f"status {tmp_path}/demo/gateway.toml" in text


def test_a_scripted_pair_replaces_a_missing_local_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The demo writes the reason to standard error and continues."""
    demo = Demo(tmp_path / "demo", questions=20, once=True, port=free_port(), model=tmp_path / "missing.gguf")
    report = demo.run()
    assert (report.pair, report.questions, report.complete) == ("scripted", 20, True)
    assert "missing.gguf" in (report.instead_because or "")
    assert "the local model cannot run (there is no model file" in capsys.readouterr().err
