"""``bpac chain`` with the real local model."""

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from bpac.replay.tables.reading import read_table
from tests.collecting.pairs import bpac, command, recorded_answers
from tests.once import made_once

QUESTIONS, PROMPTED = 200, 24
ASKED = 2 * QUESTIONS + 2 * 2 * PROMPTED


def words(folder: Path) -> list[str]:
    """The arguments of the command."""
    sizes = {"--questions": QUESTIONS, "--prompted": PROMPTED, "--seed": 7, "--runs": 3}
    options = [part for name, value in sizes.items() for part in (name, str(value))]
    return ["chain", "--out", str(folder), *options, "--json"]


def without_run_statistics(report: dict[str, Any]) -> dict[str, Any]:
    """The report without the figures that differ between runs."""
    return {name: value for name, value in report.items() if name not in ("asked_now", "tokens_now", "seconds")}


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> tuple[Path, int, dict[str, Any]]:
    """A chain that was killed and started again: its folder, its number of answers when killed, and its report."""
    return made_once("chain", killed_and_finished, tmp_path_factory, worker_id)


def killed_and_finished(folder: Path) -> tuple[Path, int, dict[str, Any]]:
    """The chain, in a new folder, which tests of all processes read and none changes."""
    answers = folder / "answers.jsonl"
    with subprocess.Popen(command(words(folder)), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 120.0
        while not answers.exists() or not answers.stat().st_size or len(recorded_answers(answers)) < QUESTIONS // 2:
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
        os.kill(process.pid, signal.SIGKILL)
    kept = len(recorded_answers(answers))
    finished = bpac(*words(folder))
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.count("\n") == 1
    return folder, kept, json.loads(finished.stdout)


def test_a_killed_chain_sends_no_request_twice(chain: tuple[Path, int, dict[str, Any]]) -> None:
    """The second run requests exactly the answers that were not in the file when the first was killed."""
    folder, kept, report = chain
    assert QUESTIONS // 2 <= kept < 2 * QUESTIONS
    assert report["asked_now"] == ASKED - kept
    found = [(reply.id, reply.role) for reply in recorded_answers(folder / "answers.jsonl")]
    assert len(found) == len(set(found)) == 2 * QUESTIONS


def test_a_finished_chain_sends_no_requests(chain: tuple[Path, int, dict[str, Any]], tmp_path: Path) -> None:
    """A chain that is finished gives the same figures again without sending requests."""
    folder, _, report = chain
    copied = shutil.copytree(folder, tmp_path / "chain")
    again = json.loads(bpac(*words(copied)).stdout.replace(str(copied), str(folder)))
    assert again["asked_now"] == 0
    assert without_run_statistics(again) == without_run_statistics(report)


def test_the_pair_is_worth_routing(chain: tuple[Path, int, dict[str, Any]]) -> None:
    """On held-out questions the expert is correct more often, uses more tokens, and every score predicts errors."""
    _, _, report = chain
    assert report["rows"] + report["left_out"] == QUESTIONS
    assert report["left_out"] < QUESTIONS / 20
    assert report["expert_accuracy"] > report["draft_accuracy"] > 0.2
    assert report["expert_tokens"] > 2 * report["draft_tokens"]
    assert set(report["auroc"]) == {"mean_token_probability", "perplexity", "entropy"}
    assert min(report["auroc"].values()) > 0.7


def test_the_chain_reports_three_routers_at_three_risk_limits(chain: tuple[Path, int, dict[str, Any]]) -> None:
    """Each router has its figures, the table can be read, and the report contains figures."""
    folder, _, report = chain
    routers = {(one["epsilon"], one["policy"]): one for one in report["routers"]}
    assert set(routers) == {(e, p) for e in (0.02, 0.05, 0.08) for p in ("paper", "portfolio", "oracle")}
    for (epsilon, policy), one in routers.items():
        assert 0.0 < one["expert_call_rate"]["mean"] <= 1.0
        assert 0.0 <= one["above_epsilon"] <= 1.0
        assert policy == "oracle" or one["empirical_risk"]["mean"] <= epsilon
    assert routers[0.08, "oracle"]["token_ratio"]["mean"] < 1.0
    table = read_table(folder / "table.csv")
    assert len(table) == report["rows"]
    assert table.loss.mean() == pytest.approx(report["loss"])
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert page.count("<svg") >= 3
    assert "AUROC" in page
    summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    assert without_run_statistics(summary) == without_run_statistics(report)


def test_prompting_methods_are_measured(chain: tuple[Path, int, dict[str, Any]]) -> None:
    """Each method is tried on the same questions, and ungraded answers are not counted as wrong."""
    _, _, report = chain
    rows = {row["method"]: row for row in report["prompting"]}
    assert list(rows) == ["Thinking (the expert)", "Direct answers (the draft)", "Chain of Draft", "NoThinking"]
    for row in rows.values():
        assert row["questions"] == PROMPTED
        assert row["right"] + row["unknown"] <= PROMPTED
        assert row["accuracy"] > 0.4
        assert row["loss"] < 0.5
    assert rows["NoThinking"]["tokens"] < rows["Chain of Draft"]["tokens"] < rows["Thinking (the expert)"]["tokens"]


def test_prompting_methods_can_be_left_out(tmp_path: Path) -> None:
    """With ``--prompted 0`` there are no requests, no rows and no section for prompting methods."""
    ran = bpac("chain", "--out", str(tmp_path), "--questions", "12", "--prompted", "0", "--runs", "1", "--json")
    assert ran.returncode == 0, ran.stderr
    report = json.loads(ran.stdout)
    assert (report["prompting"], report["asked_now"]) == ([], 24)
    assert 'id="prompting"' not in (tmp_path / "report.html").read_text(encoding="utf-8")
