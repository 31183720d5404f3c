"""``bpac reproduce``: numbers, figures and one report, for the studies of the package and for the user's own tables."""

import csv
from pathlib import Path

import numpy as np
import pytest

from bpac.cli.program import main
from bpac.errors import InputError
from bpac.replay.parallel import Engine
from bpac.replay.studies.experiments import EXPERIMENTS, PUBLISHED, named_experiment
from bpac.replay.studies.reproduce import NAMES, reproduce
from bpac.replay.tables.builtin import builtin_table
from bpac.replay.tables.table import Table
from bpac.replay.tables.writing import write_table

ONE_PROCESS = Engine(workers=1)


def test_every_experiment_has_a_unique_name() -> None:
    """An unknown name is refused with a list of those that are known, and so is a command without any name."""
    assert len(set(NAMES)) == len(NAMES)
    assert {experiment.name for experiment in EXPERIMENTS} < set(NAMES)
    with pytest.raises(InputError, match="shift"):
        named_experiment("cold-fusion")
    with pytest.raises(InputError, match="nothing to reproduce"):
        reproduce([], 1, Path("unused"))


def test_the_report_is_one_page_without_external_files(tmp_path: Path) -> None:
    """Tables, figures and a table of contents are in one file, without a link to anything outside it."""
    written = reproduce(["stall", "bets", "bets"], 1, tmp_path, engine=ONE_PROCESS).written
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert written[-1].name == "report.html"
    assert page.count("<section") == page.count("<svg") == 2
    assert 'href="#bets"' in page
    assert 'src="' not in page
    assert 'href="http' not in page
    rows = (tmp_path / "bets.csv").read_text(encoding="utf-8").splitlines()
    assert rows[0].startswith("method,at,epsilon,empirical_risk_mean,empirical_risk_std,expert_call_rate_mean")
    assert len(rows) == 1 + len(named_experiment("bets").methods)


@pytest.mark.promise
def test_every_study_writes_its_section(tmp_path: Path) -> None:
    """All names at once: each has a section and numbers, and all but the table of prompting methods have a figure.

    The report begins with the figures that the paper prints, beside those of this package and of the oracle.
    """
    reproduce(["all"], 1, tmp_path, engine=ONE_PROCESS)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    for name in NAMES:
        assert f'<section id="{name}">' in page
        assert (tmp_path / f"{name}.csv").exists()
        assert (tmp_path / f"{name}.png").exists() == (tmp_path / f"{name}.svg").exists() == (name != "prompting")
    assert "nan" not in page.lower().replace("finance", "")
    assert page.index('id="summary"') < page.index('id="stall"')
    rows = (tmp_path / "summary.csv").read_text(encoding="utf-8").splitlines()
    assert len(rows) == 1 + 4 * len(PUBLISHED)
    assert sum("%" in row.rsplit(",", 1)[1] for row in rows) == len(PUBLISHED)


def test_own_tables_are_compared_with_the_oracle(tmp_path: Path) -> None:
    """``--tables`` shows both policies and the oracle on each table for two values of ε; TP is empty without tokens."""
    whole = builtin_table("math-like", rows=600)
    write_table(whole, tmp_path / "answers.csv")
    write_table(Table(whole.uncertainty, whole.loss), tmp_path / "bare.jsonl.gz")
    (tmp_path / "other").mkdir()
    write_table(whole, tmp_path / "other" / "answers.csv")
    places = [str(tmp_path / name) for name in ("answers.csv", "bare.jsonl.gz", "other/answers.csv")]
    out = ["--runs", "2", "--workers", "1", "--out", str(tmp_path / "report")]
    assert main(["reproduce", "--tables", *places, *out]) == 0
    page = (tmp_path / "report" / "report.html").read_text(encoding="utf-8")
    assert page.count("<section") == 2 + 3
    assert places[0] in page, "two files of the same name are shown with their paths"
    rows = list(csv.reader((tmp_path / "report" / "gap-0.05.csv").read_text(encoding="utf-8").splitlines()))
    assert [row[4] for row in rows if row[0] == "bare.jsonl.gz"] == ["", "", ""]
    assert len(rows) == 1 + 3 * 3


def test_graded_answers_of_prompting_methods_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``--graded`` fills the row of a method; the row of a method without answers says which option to give."""
    table = Table(np.full(4, 0.5), np.array([0.0, 1.0, 0.0, 0.0]), np.full(4, 10.0), np.full(4, 40.0))
    write_table(table, tmp_path / "draft.csv")
    arguments = ["reproduce", "prompting", "--runs", "1", "--workers", "1", "--out", str(tmp_path)]
    assert main([*arguments, "--graded", f"Chain of Draft={tmp_path / 'draft.csv'}"]) == 0
    rows = (tmp_path / "prompting.csv").read_text(encoding="utf-8")
    assert "Chain of Draft,4 of yours,your graded answers,25.0 %,25.0 %,none" in rows
    assert 'NoThinking,,"none yet: give --graded' in rows
    assert main([*arguments, "--graded", "NoThinking"]) == 2
    assert "give METHOD=TABLE" in capsys.readouterr().err
