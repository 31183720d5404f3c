"""The paper's first table: routing beside Chain of Draft and NoThinking, which shorten the thinking every time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bpac.errors import BpacError
from bpac.replay.paper.builtin import ER, MATH, MMLU, TP
from bpac.replay.paper.figures import EPSILON
from bpac.replay.parallel import Arrays
from bpac.replay.studies.comparison import Comparison
from bpac.replay.studies.methods import B_PAC, PORTFOLIO, compared
from bpac.replay.studies.reporting.replay_results import ReplayTask
from bpac.replay.studies.reporting.report import ReportSection, TableOfNumbers
from bpac.replay.studies.reporting.statements import Finding, Printed, mark_of
from bpac.replay.studies.study import ResultsFolder, percent
from bpac.replay.tables.table import Table
from bpac.routing.policies import Paper, Portfolio

DRAFT, NO_THINKING = "Chain of Draft", "NoThinking"
# ER and TP that the paper prints for each method: ER as a fraction, TP as a percentage.
PRINTED = {
    (MATH.label, DRAFT): ("0.1204", "95.63"),
    (MATH.label, NO_THINKING): ("0.1577", "77.26"),
    (MMLU.label, DRAFT): ("0.10", "73.63"),
    (MMLU.label, NO_THINKING): ("0.12", "76.52"),
}
COMPARISON = Comparison(
    "table-1",
    "Routing beside Chain of Draft and NoThinking",
    (MATH, MMLU),
    compared(EPSILON, {B_PAC: Paper(), PORTFOLIO: Portfolio()}),
    number="Table 1",
    text=(
        "Chain of Draft and NoThinking prompt the expert to think less about every question. They have no threshold "
        "and make no promise."
    ),
    panels=(),
    statements=(
        Printed(MATH.label, B_PAC, ER, "0.03", "0.01"),
        Printed(MATH.label, B_PAC, TP, "68.16", "14.56"),
        Printed(MMLU.label, B_PAC, ER, "0.03", "0.01"),
        Printed(MMLU.label, B_PAC, TP, "77.24", "9.94"),
    ),
)


@dataclass(frozen=True, slots=True)
class PromptedAnswers:
    """The answers of a prompting method, graded against those of the expert.

    Parameters
    ----------
    method: its name.
    where: which model answered which questions.
    loss: average loss against the expert.
    token_ratio: tokens relative to the expert's; none if they are not known.
    accuracy: share of correct answers; none if it is not known.
    """

    method: str
    where: str
    loss: float
    token_ratio: float | None
    accuracy: float | None = None

    @classmethod
    def of(cls, method: str, table: Table) -> "PromptedAnswers":
        """Those in a table of the user, whose drafts are the answers of the method."""
        ratio = None
        if table.draft_tokens is not None and table.expert_tokens is not None and table.expert_tokens.sum() > 0:
            ratio = float(table.draft_tokens.sum() / table.expert_tokens.sum())
        return cls(method, f"{len(table):,} graded answers given with --graded", float(table.loss.mean()), ratio)


# Measures prompting methods; finished work is kept in the folder.
MeasurePrompting = Callable[[Path], Sequence[PromptedAnswers]]


@dataclass(frozen=True, slots=True)
class Table1Study:
    """The table of prompting methods.

    Parameters
    ----------
    measure: measures the prompting methods.
    comparison: the routers that they are compared with (default: those on the built-in tables).
    """

    measure: MeasurePrompting
    comparison: Comparison = COMPARISON
    name: str = COMPARISON.name

    def tasks(self) -> list[ReplayTask]:
        """The replays of the routers."""
        return self.comparison.tasks()

    def section(self, results: Sequence[Arrays], folder: ResultsFolder) -> ReportSection:
        """ER and TP of every method, with where its answers come from."""
        base = self.comparison.section(results, folder)
        missing = ""
        prompted: Sequence[PromptedAnswers] = ()
        try:
            prompted = self.measure(folder.path / "runs")
        except BpacError as error:
            missing = str(error)
        findings = [*base.findings, *(_findings(prompted, missing) if self.comparison.statements else ())]
        folder.write_csv(
            f"{self.name}-prompting",
            ["method", "answers", "empirical_risk", "token_ratio", "accuracy"],
            [(one.method, one.where, one.loss, one.token_ratio, one.accuracy) for one in prompted],
        )
        table = self.comparison.table(self.comparison.measured(results))
        rows = [[row[1], f"replayed, {row[0]}", row[3], row[5], "", f"ER below {EPSILON:g}"] for row in table.rows]
        rows += [
            [one.method, one.where, percent(one.loss), _share(one.token_ratio), _share(one.accuracy), "none"]
            for one in prompted
        ]
        header = ["method", "answers", "ER", "TP", "accuracy", "promise"]
        mark = mark_of(findings, len(results[0]["paths"])) if findings else None
        return replace(base, table=TableOfNumbers(header, rows), findings=findings, mark=mark)


def _share(value: float | None) -> str:
    return "" if value is None else percent(value)


def _findings(prompted: Sequence[PromptedAnswers], missing: str) -> list[Finding]:
    measured = {one.method: one for one in prompted}
    findings = []
    for (part, method), (risk, tokens) in PRINTED.items():
        ours = measured.get(method)
        shown = "not measured" if ours is None else f"ER {percent(ours.loss)}, TP {_share(ours.token_ratio)}"
        because = (
            f"{method} was not measured ({missing or 'no answers were given'})"
            if ours is None
            else "the prompting methods ran on another model and on other questions than the paper's"
        )
        printed = f"ER {100 * float(risk):g} %, TP {tokens} %"
        # Numbers of another model never confirm those of the paper's, even if they are close.
        findings.append(Finding(f"{part}, {method}", printed, shown, holds=False, because=because))
    for method in (DRAFT, NO_THINKING):
        one = measured.get(method)
        if one is not None:
            said = f"{method}: ER above ε = {EPSILON:g}, where routing stays below"
            findings.append(Finding(said, "on both benchmarks", percent(one.loss), holds=one.loss > EPSILON))
    return findings
