"""The paper's figure of the judge's prompt: the prompt of this package, and how well a real model judges with it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bpac.errors import BpacError
from bpac.grader_accuracy.judge_agreement import JudgeAgreement
from bpac.grading.judge import judge_prompt
from bpac.replay.parallel import Arrays, Task
from bpac.replay.studies.reporting.report import ReportSection, TableOfNumbers
from bpac.replay.studies.reporting.statements import PAPER_RUNS, Finding, mark_of
from bpac.replay.studies.study import ResultsFolder

# Measures a judge, given a folder in which finished work is kept.
MeasureJudge = Callable[[Path], JudgeAgreement]


@dataclass(frozen=True, slots=True)
class JudgeStudy:
    """The judge's prompt and its measured agreement with known preferences.

    Parameters
    ----------
    measure: measures a judge.
    """

    measure: MeasureJudge
    name: str = "figure-4"

    def tasks(self) -> list[Task]:
        """None: the judge is asked once."""
        return []

    def section(self, results: Sequence[Arrays], folder: ResultsFolder) -> ReportSection:
        """The prompt, and the agreement of a real model that judges with it."""
        rows: list[list[str]] = []
        try:
            found = self.measure(folder.path / "runs")
        except BpacError as error:
            text = f"Its agreement with known preferences was not measured: {error}."
        else:
            text = (
                f"Measured on {found.pairs} pairs of answers, one of them clearly better: {'; '.join(found.summary())}."
            )
            faults = found.by_fault()
            rows = [[fault, str(counts["pairs"]), str(counts["agreed"])] for fault, counts in faults.items()]
            header = ["model", "pairs", "answered", "agreement", "lower_95", "upper_95", "changed_share"]
            values = (found.model, found.pairs, found.answered, found.agreement, *found.interval, found.changed_share)
            folder.write_csv(self.name, header, [values])
        finding = Finding("a prompt for a judge of draft and expert", "shown", "our own, shown here", holds=True)
        return ReportSection(
            self.name,
            "The judge's prompt for open-ended questions",
            "The judge marks the draft and the expert's answer from 1 to 10, each alone, with the prompt below; the "
            f"loss follows from both marks. {text}",
            [],
            TableOfNumbers(["what is wrong with the worse answer", "pairs", "judge agrees"], rows),
            number="Figure 4",
            mark=mark_of([finding], PAPER_RUNS),
            findings=[finding],
            quoted="\n\n".join(f"[{message['role']}]\n{message['content']}" for message in judge_prompt()),
        )
