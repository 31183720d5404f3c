"""``bpac reproduce``: numbers, figures and one report, for the studies of the package and for the user's own tables."""

import csv
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bpac.cli.program import main
from bpac.errors import InputError
from bpac.replay.cascade.builtin import CASCADES
from bpac.replay.parallel import Engine
from bpac.replay.studies import study
from bpac.replay.studies.on_tables import savings
from bpac.replay.studies.reproduce import NAMES, reproduce
from bpac.replay.tables.builtin import BENCHMARKS, builtin_table
from bpac.replay.tables.table import Table
from bpac.replay.tables.writing import write_table

ONE_PROCESS = Engine(workers=1)


def test_every_section_has_a_unique_name() -> None:
    """An unknown name is refused with a list of those that are known, and so is a command without any name."""
    assert len(set(NAMES)) == len(NAMES)
    with pytest.raises(InputError, match="figure-1"):
        reproduce(["cold-fusion"], 1, Path("unused"))
    with pytest.raises(InputError, match="nothing to reproduce"):
        reproduce([], 1, Path("unused"))


def test_the_report_is_one_page_without_external_files(tmp_path: Path) -> None:
    """Tables, figures and a table of contents are in one file, without a link to anything outside it."""
    done = reproduce(["stall", "figure-7", "figure-7"], 1, tmp_path, engine=ONE_PROCESS)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert done.written[-1].name == "report.html"
    assert page.count("<section") == 2
    assert page.count("<svg") == 1 + 6
    assert 'href="#figure-7"' in page
    assert 'src="' not in page
    assert 'href="http' not in page
    identifiers = re.findall(r'\bid="([^"]+)"', page)
    assert len(set(identifiers)) == len(identifiers), "panels share no identifiers"
    rows = (tmp_path / "figure-7.csv").read_text(encoding="utf-8").splitlines()
    assert rows[0].startswith("stream,method,epsilon,runs,empirical_risk_mean,empirical_risk_std,expert_call_rate_mean")
    assert len(rows) == 1 + 2 * 3
    for extension in ("svg", "pdf", "png"):
        assert (tmp_path / f"figure-7.{extension}").stat().st_size > 1000


@pytest.mark.promise
def test_every_section_of_our_own_has_a_figure_and_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has a section, a figure and a file of numbers that can be computed with, without signs or units."""
    monkeypatch.setattr(study, "FORMATS", ("svg",))  # the others are tested with fewer figures
    monkeypatch.setattr(savings, "LENGTHS", (1,))  # five times the length takes five times as long
    for name, cascade in CASCADES.items():
        monkeypatch.setitem(CASCADES, name, replace(cascade, rows=1000))
    for name, benchmark in BENCHMARKS.items():
        # A mixed table takes 3,000 rows of one of them.
        monkeypatch.setitem(BENCHMARKS, name, replace(benchmark, rows=3000 if name == "bbh-like" else 1500))
    own = NAMES[NAMES.index("overhead") + 1 :]
    reproduce(own, 1, tmp_path, engine=ONE_PROCESS)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    for name in own:
        assert f'<section id="{name}">' in page
        assert (tmp_path / f"{name}.svg").exists()
        rows = list(csv.reader((tmp_path / f"{name}.csv").read_text(encoding="utf-8").splitlines()))
        assert not any("%" in cell or "±" in cell for row in rows for cell in row)
        assert all(re.fullmatch(r"[a-z_0-9]+", column) for column in rows[0])
    assert "nan" not in re.sub("<[^>]*>", "", page).lower()


def test_own_tables_get_every_figure_that_their_columns_allow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``--tables`` makes the paper's sections from given tables, with tokens and other scores where they are known."""
    monkeypatch.setattr(study, "FORMATS", ("svg",))
    whole = builtin_table("math-like", rows=600)
    answers = tmp_path / "answers.csv"
    write_table(whole, answers)
    lines = answers.read_text(encoding="utf-8").splitlines()
    scored = [f"{lines[0]},uncertainty_verbal,uncertainty_partial"]
    scored += [f"{line},{0.1 * (k % 7)},{'' if k % 2 else 0.5}" for k, line in enumerate(lines[1:])]
    answers.write_text("\n".join(scored) + "\n", encoding="utf-8")
    write_table(Table(whole.uncertainty, whole.loss), tmp_path / "bare.jsonl.gz")
    (tmp_path / "other").mkdir()
    write_table(whole, tmp_path / "other" / "answers.csv")
    places = [str(tmp_path / name) for name in ("answers.csv", "bare.jsonl.gz", "other/answers.csv")]
    out = ["--runs", "2", "--workers", "1", "--out", str(tmp_path / "report")]
    names = ["figure-1", "figure-2", "figure-3", "table-1", "table-2", "figure-6", "gap-0.05"]
    assert main(["reproduce", *names, "--tables", *places, *out]) == 0
    page = (tmp_path / "report" / "report.html").read_text(encoding="utf-8")
    assert re.findall(r'<section id="([^"]+)">', page) == names
    assert "other/answers.csv" in page, "two files of the same name are shown with their folders"
    assert str(tmp_path) not in page
    rows = list(csv.reader((tmp_path / "report" / "gap-0.05.csv").read_text(encoding="utf-8").splitlines()))
    tokens = rows[0].index("token_ratio_mean")
    assert {row[tokens] for row in rows if row[0] == "bare.jsonl.gz"} == {"nan", ""}
    assert len(rows) == 1 + 3 * 3
    scores = (tmp_path / "report" / "table-2.csv").read_text(encoding="utf-8")
    assert "portfolio, verbal" in scores
    assert "partial" not in scores, "a score that is missing in some rows is left out"
    figure = page[page.index('<section id="figure-6">') : page.index('<section id="gap-0.05">')]
    assert figure.count("<svg") == 3 + 2 + 3, "without tokens there is no panel of tokens"


def test_names_that_need_the_built_in_tables_are_refused_for_given_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The message lists the sections that can be made from tables."""
    write_table(builtin_table("math-like", rows=60), tmp_path / "t.csv")
    assert main(["reproduce", "hostile", "--tables", str(tmp_path / "t.csv"), "--out", str(tmp_path / "r")]) == 2
    assert "figure-9" in capsys.readouterr().err


def test_graded_answers_of_prompting_methods_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``--graded`` fills the row of a method in the first table; a method without answers is not measured."""
    table = Table(np.full(4, 0.5), np.array([0.0, 1.0, 0.0, 0.0]), np.full(4, 10.0), np.full(4, 40.0))
    write_table(table, tmp_path / "draft.csv")
    arguments = ["reproduce", "table-1", "--runs", "1", "--workers", "1", "--out", str(tmp_path)]
    assert main([*arguments, "--graded", f"Chain of Draft={tmp_path / 'draft.csv'}"]) == 0
    (row,) = csv.DictReader((tmp_path / "table-1-prompting.csv").read_text(encoding="utf-8").splitlines())
    assert (row["method"], row["empirical_risk"], row["token_ratio"]) == ("Chain of Draft", "0.25", "0.25")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "4 graded answers given with --graded" in page
    assert "NoThinking was not measured (no answers were given)" in page
    assert main([*arguments, "--graded", "NoThinking"]) == 2
    assert "give METHOD=TABLE" in capsys.readouterr().err
