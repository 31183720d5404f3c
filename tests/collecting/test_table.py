import asyncio
import json
import math
from pathlib import Path
from typing import Any

import pytest

from bpac.collecting.grade import Grade, GradingRun
from bpac.collecting.table import auroc, build_table, read_latest_grades
from bpac.errors import BpacError, TableError
from bpac.replay.tables.reading import read_table
from bpac.testing import Reply, Request, ScriptedServer
from tests.collecting.pairs import GSM8K, adds, collect, number, role

SCORES = {"mean_token_probability": 0.2, "perplexity": 0.3, "entropy": 0.4}


def grade(number_: int, **more: Any) -> Grade:
    """A grade of a correct draft; further fields can be given."""
    known: dict[str, Any] = {
        "loss": 0.0,
        "draft_correct": True,
        "expert_correct": True,
        "draft_tokens": 3,
        "expert_tokens": 30,
        "scores": SCORES,
    }
    return Grade(str(number_), "sums", "", **known | more)


def test_a_table_has_one_row_per_answered_question(tmp_path: Path) -> None:
    """A question with a failed request has no row and is counted with its reason."""

    def script(request: Request) -> Reply:
        broken = number(request) == 3 and role(request) == "expert"
        return Reply("too long", status=400) if broken else adds(request)

    with ScriptedServer(script) as server:
        collect(server, tmp_path, 10)
    asyncio.run(GradingRun(GSM8K, tmp_path / "answers.jsonl", tmp_path / "grades.jsonl").run())
    rows = build_table(read_latest_grades(tmp_path / "grades.jsonl"))
    rows.write(tmp_path / "table.csv")
    assert len(rows) == 9
    assert rows.left_out == {"the expert failed": 1}
    assert "question gsm8k-3: " in rows.examples["the expert failed"]
    summary = rows.summary()
    assert (summary["rows"], summary["left_out"], summary["reasons"]) == (9, 1, {"the expert failed": 1})
    assert summary["draft_accuracy"] == pytest.approx(5 / 9)
    assert (summary["expert_accuracy"], summary["draft_tokens"], summary["expert_tokens"]) == (1.0, 2.0, 5.0)
    assert summary["auroc"] == {"mean_token_probability": 1.0, "perplexity": 1.0, "entropy": 1.0}
    table = read_table(tmp_path / "table.csv")
    assert table.loss.sum() == 4.0
    assert table.expert_correct is not None
    assert table.uncertainty.tolist() == rows.columns["uncertainty"]


@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".csv.gz", ".jsonl.gz", ".parquet"])
def test_every_score_can_be_replayed(tmp_path: Path, ending: str) -> None:
    """In every file format, each score has its own column, which can be used as the uncertainty."""
    path = tmp_path / f"table{ending}"
    build_table([grade(1), grade(2, loss=1.0, draft_correct=False)]).write(path)
    for name, value in SCORES.items():
        table = read_table(path, f"uncertainty_{name}")
        assert table.uncertainty.tolist() == [value, value]
        assert table.loss.tolist() == [0.0, 1.0]
    assert read_table(path).uncertainty.tolist() == [0.2, 0.2]
    build_table([grade(1)], "entropy").write(path)
    assert read_table(path).uncertainty.tolist() == [0.4]


def test_a_draft_without_the_chosen_score_is_left_out(tmp_path: Path) -> None:
    """It is counted with its reason; another score that some drafts lack has no column, with a reason."""
    partly = grade(2, scores={"mean_token_probability": 0.1}, unscored={"perplexity": "none given"})
    rows = build_table([grade(1), partly])
    assert len(rows) == 2
    assert "uncertainty_perplexity" not in rows.columns
    assert rows.scores_left_out["perplexity"] == "unknown in 1 of 2 rows: none given"
    rows = build_table([grade(1), partly], "perplexity")
    assert (len(rows), rows.left_out) == (1, {"the draft has no perplexity": 1})
    assert rows.examples == {"the draft has no perplexity": "question 2: none given"}


def test_a_score_that_every_draft_lacks_is_an_error() -> None:
    """The error names the score, an example and the other reasons."""
    bare = [grade(number_, scores={}, unscored={"entropy": "ask with top_logprobs"}) for number_ in (1, 2)]
    failed = grade(3, unknown="the draft failed", loss=None)
    with pytest.raises(BpacError) as caught:
        build_table([*bare, failed], "entropy")
    message = str(caught.value)
    assert "all 2 questions with a known loss lack the score entropy" in message
    assert "Choose another with --score" in message
    assert "question 1: ask with top_logprobs" in message
    assert "The loss of the other questions is unknown: the draft failed (1)" in message


def test_a_table_of_judged_answers_has_marks(tmp_path: Path) -> None:
    """Judged answers have marks and a preference instead of verdicts."""
    none = {"draft_correct": None, "expert_correct": None}
    marked = [
        grade(1, draft_mark=7.0, expert_mark=7.0, **none),
        grade(2, draft_mark=4.0, expert_mark=8.0, **none | {"loss": 2 / 3}),
        grade(3, **none | {"unknown": "the judge gave no mark", "loss": None}),
    ]
    rows = build_table(marked)
    rows.write(tmp_path / "table.csv")
    assert rows.left_out == {"the judge gave no mark": 1}
    assert rows.columns["expert_preferred"] == [0, 1]
    assert "draft_correct" not in rows.columns
    assert rows.summary()["auroc"] is None
    table = read_table(tmp_path / "table.csv")
    assert table.loss.tolist() == [0.0, 2 / 3]
    assert len(table.only("expert_preferred")) == 1


def test_unknown_token_counts_are_empty(tmp_path: Path) -> None:
    """If a server does not count tokens, the counts are empty, not 0."""
    rows = build_table([grade(1), grade(2, draft_tokens=None)])
    rows.write(tmp_path / "table.jsonl")
    assert json.loads((tmp_path / "table.jsonl").read_text(encoding="utf-8").splitlines()[1])["draft_tokens"] is None
    assert read_table(tmp_path / "table.jsonl").draft_tokens is None
    assert rows.summary()["draft_tokens"] is None


def test_no_file_is_written_without_rows_or_in_an_unknown_format(tmp_path: Path) -> None:
    """The error names the reasons, or the known formats."""
    with pytest.raises(BpacError, match=r"the draft failed \(2\)"):
        build_table([grade(n, unknown="the draft failed", loss=None) for n in (1, 2)])
    with pytest.raises(TableError, match=r"\.csv, \.jsonl"):
        build_table([grade(1)]).write(tmp_path / "table.xlsx")
    assert list(tmp_path.iterdir()) == []


def test_auroc_counts_pairs() -> None:
    """AUROC is the share of pairs in which the wrong draft is more uncertain; none if all drafts are correct."""
    scores, wrong = [0.1, 0.4, 0.4, 0.2, 0.9, 0.3], [0, 1, 0, 0, 1, 1]
    pairs = [
        (a > b) + 0.5 * (a == b)
        for a, bad in zip(scores, wrong, strict=True)
        for b, worse in zip(scores, wrong, strict=True)
        if bad and not worse
    ]
    assert auroc(scores, wrong) == pytest.approx(math.fsum(pairs) / len(pairs))
    assert auroc([0.1, 0.2], [0, 0]) is None
