"""All studies by name, and ``reproduce``, which runs some of them and writes numbers, figures and the report."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bpac.arguments import one_of
from bpac.errors import InputError
from bpac.output_files import refuse_overwriting
from bpac.replay.figures import check_installed
from bpac.replay.parallel import ALL_CORES, Engine, run_tasks
from bpac.replay.studies.certificate import CertificateStudy
from bpac.replay.studies.comparison import ComparisonStudy
from bpac.replay.studies.drift import DriftStudy
from bpac.replay.studies.experiments import BOTH, EXPERIMENTS, Experiment, RoutingMethod
from bpac.replay.studies.gap import GapStudy, SummaryStudy
from bpac.replay.studies.hostile import HostileStudy
from bpac.replay.studies.load import FaultsStudy, OrderStudy
from bpac.replay.studies.prompting import PromptingStudy
from bpac.replay.studies.report import ReportSection, write_report
from bpac.replay.studies.stall import StallStudy
from bpac.replay.studies.study import ResultsFolder, Study
from bpac.replay.tables.table import Table

STUDIES: tuple[Study, ...] = (
    SummaryStudy(),
    StallStudy(),
    *(ComparisonStudy(experiment) for experiment in EXPERIMENTS),
    PromptingStudy(),
    DriftStudy(),
    CertificateStudy(),
    HostileStudy(),
    OrderStudy(),
    FaultsStudy(),
)
NAMES = tuple(study.name for study in STUDIES)
TABLE_EPSILONS = (0.05, 0.08)


@dataclass(frozen=True, slots=True)
class Reproduced:
    """The results that were reproduced.

    Parameters
    ----------
    sections: the sections of the report, in order.
    written: the files that were written; the report is the last one.
    """

    sections: list[ReportSection]
    written: list[Path]


def reproduce(
    names: Sequence[str],
    runs: int,
    out: Path,
    *,
    tables: Mapping[str, Table] | None = None,
    graded: Mapping[str, Table] | None = None,
    inputs: Sequence[str | Path] = (),
    engine: Engine = ALL_CORES,
) -> Reproduced:
    """Run studies and write their numbers, figures and the report.

    Parameters
    ----------
    names: names of the studies; ``all`` for all of them; empty for the given tables only.
    runs: number of replays of each method.
    out: folder to write to. Finished runs are saved there too, so that a stopped command resumes.
    tables: the user's tables by name, for studies of what the policies would save on them.
    graded: graded answers of prompting methods by name, for the table of prompting methods.
    inputs: the files that tables and graded answers were read from; none of them is overwritten.
    engine: where the replays run.
    """
    for name in names:
        one_of(name, "NAME", ("all", *NAMES))
    wanted = NAMES if "all" in names else names
    studies = [study for study in STUDIES if study.name in wanted]
    studies = [replace(s, graded=dict(graded or {})) if isinstance(s, PromptingStudy) else s for s in studies]
    studies += _studies_of_tables(dict(tables or {}))
    if not studies:
        raise InputError("nothing to reproduce: give names of results, or tables with --tables")
    for study in studies:
        for name in (study.name, f"{study.name}-paths"):
            refuse_overwriting({"--out": out / f"{name}.csv"}, inputs)
    check_installed()
    out.mkdir(parents=True, exist_ok=True)
    tasks = [list(study.tasks()) for study in studies]
    results = iter(run_tasks([task for of_study in tasks for task in of_study], runs, out / "runs", engine))
    folder = ResultsFolder(out)
    sections = [
        study.section([next(results) for _ in of_study], folder) for study, of_study in zip(studies, tasks, strict=True)
    ]
    report = out / "report.html"
    write_report(sections, report)
    return Reproduced(sections, [*folder.written, report])


def _studies_of_tables(tables: dict[str, Table]) -> list[Study]:
    """The gap to the oracle on all tables, and both policies over time on each."""
    if not tables:
        return []
    epsilon = TABLE_EPSILONS[0]
    methods = tuple(RoutingMethod(label, policy, epsilon) for label, policy in BOTH)
    comparisons = [
        ComparisonStudy(Experiment(f"table-{number}", f"What you would save: {name}", name, methods), table)
        for number, (name, table) in enumerate(tables.items(), start=1)
    ]
    return [*(GapStudy(tables, epsilon) for epsilon in TABLE_EPSILONS), *comparisons]
