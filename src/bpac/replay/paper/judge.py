"""The paper's figure of the judge's prompt: the prompt of this package, and how well a real model judges with it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bpac.errors import BpacError
from bpac.replay.parallel import Arrays, Task
from bpac.replay.studies.report import ReportSection, TableOfNumbers
from bpac.replay.studies.statements import Finding, mark_of
from bpac.replay.studies.study import ResultsFolder


@dataclass(frozen=True, slots=True)
class JudgeMeasurement:
    """How often a judge prefers the answer that is known to be better.

    Parameters
    ----------
    model: the judge's model.
    summary: the verdict and the figures behind it, a line each.
    faults: for each fault of the worse answers, how many pairs there are and on how many the judge agrees.
    agreement: share of pairs on which it agrees; none if no answer could be read.
    interval: exact 95 % confidence interval of that share.
    pairs: number of pairs.
    """

    model: str
    summary: Sequence[str]
    faults: Mapping[str, tuple[int, int]]
    agreement: float | None
    interval: tuple[float, float]
    pairs: int


# Measures a judge; finished work is kept in the folder.
MeasureJudge = Callable[[Path], JudgeMeasurement]


@dataclass(frozen=True, slots=True)
class JudgeStudy:
    """The judge's prompt and its measured agreement with known preferences.

    Parameters
    ----------
    prompt: the prompt as it is sent, with the places where question and answer are inserted.
    measure: measures a judge.
    """

    prompt: str
    measure: MeasureJudge
    name: str = "figure-4"

    def tasks(self) -> list[Task]:
        """None: the judge is asked once."""
        return []

    def section(self, results: Sequence[Arrays], folder: ResultsFolder) -> ReportSection:
        """The prompt, and the agreement of a real model that judges with it."""
        rows: list[list[str]] = []
        try:
            measured = self.measure(folder.path / "runs")
        except BpacError as error:
            text = f"Its agreement with known preferences was not measured: {error}."
        else:
            text = f"Measured on {measured.pairs} pairs of answers, one clearly better: {'; '.join(measured.summary)}."
            rows = [[fault, str(pairs), str(agreed)] for fault, (pairs, agreed) in measured.faults.items()]
            header = ["model", "pairs", "agreement", "lower_95", "upper_95"]
            values = (measured.model, measured.pairs, measured.agreement, *measured.interval)
            folder.write_csv(self.name, header, [values])
        finding = Finding("a prompt with which a judge compares draft and expert", "shown", "our own, below", holds=True)
        return ReportSection(
            self.name,
            "The judge's prompt for open-ended questions",
            f"The judge marks each answer from 1 to 10, and the loss follows from both marks. {text}",
            [],
            TableOfNumbers(["what is wrong with the worse answer", "pairs", "judge agrees"], rows),
            number="Figure 4",
            mark=mark_of([finding], 100),
            findings=[finding],
            quoted=self.prompt,
        )
