"""The checklist as a file: everything that the paper prints or says, what was measured here, and the mark."""

from collections.abc import Sequence

from bpac.replay.studies.reporting.report import ReportSection
from bpac.replay.studies.study import ResultsFolder

HEADER = [
    "paper",
    "section",
    "statement",
    "paper_mean",
    "paper_std",
    "here_mean",
    "here_std",
    "here",
    "mark",
    "because",
]


def write_checklist(sections: Sequence[ReportSection], folder: ResultsFolder) -> None:
    """Write ``checklist.csv``: a row for each statement; means and standard deviations are fractions."""
    rows = [
        (
            section.number,
            section.name,
            finding.said,
            *(finding.printed or (None, None)),
            *(finding.measured or (None, None)),
            finding.ours,
            "agrees" if finding.holds else "differs",
            finding.because,
        )
        for section in sections
        for finding in section.findings
    ]
    if rows:
        folder.write_csv("checklist", HEADER, rows)
