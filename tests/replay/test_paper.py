"""The report of the paper's results: its numbers are the paper's, and its marks are what the figures say."""

import csv
import fcntl
import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from bpac.errors import BpacError
from bpac.grader_accuracy.judge_agreement import JudgeAgreement, JudgedPair
from bpac.replay.paper import builtin, overhead
from bpac.replay.paper.table_1 import COMPARISON, PRINTED, PromptedAnswers
from bpac.replay.parallel import Engine
from bpac.replay.studies import study
from bpac.replay.studies.comparison import Comparison
from bpac.replay.studies.reporting.statements import Printed
from bpac.replay.studies.reproduce import Measurements, reproduce
from bpac.replay.tables.builtin import BENCHMARKS

CHECKLIST = Path(__file__).parents[2].parent / "shared" / "PAPER.md"
FIGURES = (
    builtin.FIGURE_1,
    builtin.FIGURE_2,
    builtin.FIGURE_3,
    builtin.TABLE_2,
    builtin.FIGURE_5,
    builtin.FIGURE_6,
    builtin.FIGURE_7,
    builtin.FIGURE_8,
    builtin.FIGURE_9,
)
PAPER = (
    "figure-1", "figure-2", "figure-3", "table-1", "table-2", "figure-4", "figure-5", "figure-6", "figure-7",
    "figure-8", "figure-9", "overhead",
)  # fmt: skip
RUNS = 2
Row = dict[str, str]
# The rows of a section's file by stream and method.
Rows = dict[tuple[str, str], Row]


def printed_numbers(comparison: Comparison) -> set[str]:
    """The numbers of the statements, as printed."""
    statements = [one for one in comparison.statements if isinstance(one, Printed)]
    return {text for one in statements for text in (one.mean, one.std) if text}


def test_every_number_of_the_checklist_is_checked() -> None:
    """Each number that a row of the paper's checklist prints is in the section of that row, and there is no other."""
    if not CHECKLIST.is_file():
        pytest.skip("the checklist of the paper is not beside the project")
    found = {}
    for line in CHECKLIST.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if re.fullmatch(r"(Figure|Table) \d|text", cells[0]):
            found[cells[0]] = set(re.findall(r"\d+\.\d+", cells[3]))
    ours = {one.number: printed_numbers(one) for one in FIGURES}
    ours["Table 1"] = printed_numbers(COMPARISON) | {text for values in PRINTED.values() for text in values}
    ours |= {"Figure 4": set(), "text": {overhead.PRINTED}}
    assert ours == found
    assert list(found) == [
        "Figure 1", "Figure 2", "Figure 3", "Table 1", "Table 2", "Figure 4", "Figure 5", "Figure 6", "Figure 7",
        "Figure 8", "Figure 9", "text",
    ]  # fmt: skip


def measured(_: Path) -> list[PromptedAnswers]:
    """Answers of two prompting methods."""
    return [
        PromptedAnswers("Chain of Draft", "a model", 0.12, 0.6, 0.8),
        PromptedAnswers("NoThinking", "a model", 0.05, 0.2),
    ]


def judged(_: Path) -> JudgeAgreement:
    """A judge that agrees on every pair."""
    return JudgeAgreement("a judge", (), (JudgedPair("rude", ((9.0, 1.0), (9.0, 1.0))),) * 20)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """The folder of a report of the paper's sections, with two runs; processes that test side by side share it."""
    shared = tmp_path_factory.getbasetemp() if worker_id == "master" else tmp_path_factory.getbasetemp().parent
    out, done = shared / "report", shared / "report-is-done"
    with (shared / "report-lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(study, "FORMATS", ("svg",))
                reproduce(PAPER, RUNS, out, Measurements(measured, judged), engine=Engine(workers=1))
            done.touch()
    return out


def read(path: Path) -> list[Row]:
    """The rows of a CSV file."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def rows_of(report: Path, name: str) -> Rows:
    """The rows of a section's file."""
    return {(row["stream"], row["method"]): row for row in read(report / f"{name}.csv")}


def calls(rows: Rows, stream: str, method: str) -> float:
    """The expert call rate in a file."""
    return float(rows[stream, method]["expert_call_rate_mean"])


def highest_risk(report: Path, name: str, stream: str, method: str) -> float:
    """The largest mean ER over time in a file."""
    paths = read(report / f"{name}-paths.csv")
    return max(float(row["empirical_risk_mean"]) for row in paths if (row["stream"], row["method"]) == (stream, method))


EPSILONS = [f"B-PAC, ε = {epsilon / 100:g}" for epsilon in range(5, 11)]
# What each statement without a number says about the numbers in the files, written down a second time.
SAID: dict[str, Callable[[Path, Rows, str], bool]] = {
    "ER stays below ε throughout": lambda out, rows, s: (
        highest_risk(out, *_figure(rows), s, "B-PAC") < float(rows[s, "B-PAC"]["epsilon"])
    ),
    "ER stays below each ε throughout": lambda out, rows, s: all(
        highest_risk(out, "figure-5", s, name) < float(rows[s, name]["epsilon"]) for name in EPSILONS
    ),
    "offline PAC: ER breaks ε": lambda out, rows, s: float(rows[s, "offline PAC"]["empirical_risk_mean"]) > 0.05,
    "O-naive: ER breaks ε": lambda out, rows, s: float(rows[s, "O-naive"]["empirical_risk_mean"]) > 0.08,
    "calls the expert nearly always": lambda out, rows, s: calls(rows, s, "IPS+Hoeff") >= 0.95,
    "gains are negligible": lambda out, rows, s: calls(rows, s, "offline PAC") >= 0.95,
    "ECP falls as ε grows": lambda out, rows, s: (
        [calls(rows, s, name) for name in EPSILONS] == sorted({calls(rows, s, name) for name in EPSILONS}, reverse=True)
    ),
    "threshold ends above PAC's": lambda out, rows, s: (
        float(rows[s, "B-PAC"]["threshold_mean"]) > float(rows[s, "offline PAC"]["threshold_mean"])
    ),
    "threshold comes close to PAC's": lambda out, rows, s: (
        abs(float(rows[s, "B-PAC"]["threshold_mean"]) - float(rows[s, "offline PAC"]["threshold_mean"])) <= 0.05
    ),
    "a small gap in ECP": lambda out, rows, s: abs(calls(rows, s, "B-PAC") - calls(rows, s, "offline PAC")) <= 0.1,
    "a small gap in TP": lambda out, rows, s: (
        abs(float(rows[s, "B-PAC"]["token_ratio_mean"]) - float(rows[s, "offline PAC"]["token_ratio_mean"])) <= 0.15
    ),
    "falls much faster": lambda out, rows, s: calls(rows, s, "B-PAC") + 0.05 < calls(rows, s, "fixed bet 0.05"),
    "two stages has the lowest ECP": lambda out, rows, s: (
        calls(rows, s, "B-PAC") < min(calls(rows, s, f"fixed {rate}") for rate in ("0.05", "0.2", "0.3", "0.7"))
    ),
    "a warm-up of 10 is inefficient": lambda out, rows, s: (
        calls(rows, s, "T_warm = 100") + 0.03 < calls(rows, s, "T_warm = 10")
    ),
    "a very long warm-up": lambda out, rows, s: calls(rows, s, "T_warm = 200") < calls(rows, s, "T_warm = 500"),
    "the middle is flat": lambda out, rows, s: (
        max(middle := [calls(rows, s, f"T_warm = {n}") for n in (50, 100, 200, 300)]) - min(middle) <= 0.03
    ),
}


def _figure(rows: Rows) -> tuple[str]:
    """The section that has these methods at this ε, for statements that several sections share."""
    methods, epsilon = {method for _, method in rows}, next(iter(rows.values()))["epsilon"]
    if "O-naive" in methods:
        return ("figure-3",)
    return ("figure-2",) if epsilon == "0.05" else ("figure-1",)


def agrees(report: Path, row: Row) -> bool:
    """Whether a statement of the checklist holds for the numbers in the files of its section."""
    rows = rows_of(report, row["section"])
    if not row["paper_mean"]:
        stream = next(stream for stream, _ in rows if row["statement"].startswith((f"{stream}:", f"{stream}, ")))
        (check,) = (check for said, check in SAID.items() if said in row["statement"])
        return check(report, rows, stream)
    where, short = row["statement"].rsplit(": ", 1)
    stream, method = where.split(", ", 1)
    metric = {"ER": "empirical_risk", "ECP": "expert_call_rate", "TP": "token_ratio"}[short]
    mean, std = (float(rows[stream, method][f"{metric}_{part}"]) for part in ("mean", "std"))
    printed, spread = float(row["paper_mean"]), float(row["paper_std"] or std)
    digits = next(
        len(one.mean.partition(".")[2]) + (0 if short == "ER" else 2)
        for comparison in (*FIGURES, COMPARISON)
        for one in comparison.statements
        if isinstance(one, Printed)
        and comparison.name == row["section"]
        and (one.part, one.method, one.metric) == (stream, method, metric)
    )
    allowed = 3.0 * math.sqrt(spread**2 / 100 + std**2 / RUNS) + 0.5 * 10.0**-digits
    return abs(mean - printed) <= allowed


def test_every_mark_is_what_the_figures_say(report: Path) -> None:
    """Each statement is checked again, from the numbers in the files, and each mark follows from its statements."""
    page = (report / "report.html").read_text(encoding="utf-8")
    marks: dict[str, list[bool]] = {}
    for row in read(report / "checklist.csv"):
        marks.setdefault(row["section"], []).append(row["mark"] == "agrees")
        if row["section"] not in ("overhead", "figure-4") and not row["statement"].endswith(
            ("Chain of Draft", "NoThinking")
        ):
            if "above ε" in row["statement"]:
                assert row["mark"] == ("agrees" if row["statement"].startswith("Chain of Draft") else "differs")
            else:
                assert agrees(report, row) == (row["mark"] == "agrees"), row
    assert set(marks) == set(PAPER)
    contents = page[: page.index("</nav>")]
    shown = re.findall(
        r'<tr><td class="number"><a href="#([^"]+)">.*?<span class="(agrees|differs)">([^<]+)</span>', contents
    )
    assert [name for name, _, _ in shown] == list(PAPER), "the table of contents is the checklist, in its order"
    for name, kind, words in shown:
        assert (kind == "agrees") == all(marks[name]), name
        assert words == "agrees" if kind == "agrees" else words.startswith("differs, because ")


def test_another_stream_gets_another_mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the built-in table were much harder than the paper's benchmark, its section would say that it differs."""
    harder = replace(BENCHMARKS["mmlu-pro-like"], wrong=0.2)
    monkeypatch.setitem(BENCHMARKS, "mmlu-pro-like", harder)
    (section,) = reproduce(["figure-3"], 4, tmp_path, engine=Engine(workers=1)).sections
    assert section.mark is not None
    assert not section.mark.agrees
    assert "MMLU-Pro, B-PAC: ECP" in [one.said for one in section.findings if not one.holds]


def test_what_cannot_be_measured_is_a_difference_with_its_reason(tmp_path: Path) -> None:
    """Without the local model the prompting methods are not measured, and the mark says why."""

    def missing(_: Path) -> list[PromptedAnswers]:
        raise BpacError("the extra local is not installed")

    measurements = Measurements(missing, judged)
    (section,) = reproduce(["table-1"], 1, tmp_path, measurements, engine=Engine(workers=1)).sections
    assert section.mark is not None
    assert "Chain of Draft was not measured (the extra local is not installed)" in section.mark.words
