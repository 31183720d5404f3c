"""All sections of the report by name, and ``reproduce``, which makes some of them: numbers, figures and the report."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tqdm import tqdm

from bpac.arguments import one_of
from bpac.errors import BpacError, InputError
from bpac.output_files import refuse_overwriting
from bpac.replay.figures import check_installed, printed_panels
from bpac.replay.paper import builtin as paper
from bpac.replay.paper.judge import JudgeStudy, MeasureJudge
from bpac.replay.paper.overhead import OverheadStudy
from bpac.replay.paper.table_1 import MeasurePrompting, Table1Study
from bpac.replay.parallel import ALL_CORES, Engine, run_tasks
from bpac.replay.studies.comparison import Part
from bpac.replay.studies.on_tables.calls import CallsStudy
from bpac.replay.studies.on_tables.cascade import CascadeStudy, GivenCascade, builtin_cascades
from bpac.replay.studies.on_tables.certificate import CertificateStudy
from bpac.replay.studies.on_tables.cheap_hours import CheapHoursStudy
from bpac.replay.studies.on_tables.gap import GapStudy
from bpac.replay.studies.on_tables.given_tables import GivenTable, studies_of_tables
from bpac.replay.studies.on_tables.learned import LearnedStudy
from bpac.replay.studies.on_tables.savings import SavingsStudy
from bpac.replay.studies.on_tables.segments import SEGMENT, SegmentsStudy
from bpac.replay.studies.on_tables.variants import VARIANTS
from bpac.replay.studies.own import OWN
from bpac.replay.studies.reporting.checklist import write_checklist
from bpac.replay.studies.reporting.report import ReportSection, write_report
from bpac.replay.studies.simulated.drift import DriftStudy
from bpac.replay.studies.simulated.hostile import HostileStudy
from bpac.replay.studies.simulated.load import FaultsStudy, OrderStudy
from bpac.replay.studies.simulated.replicas import ReplicasStudy
from bpac.replay.studies.simulated.stall import StallStudy
from bpac.replay.studies.study import ResultsFolder, Study
from bpac.replay.tables.builtin import builtin_table

METHODS = (
    "B-PAC is the paper's policy as printed: a grid of 1,001 thresholds, adaptive bets, a warm-up of 200 questions. "
    "The portfolio is the default policy of bpac. Offline PAC calls the expert for its calibration set of 50 questions "
    "and then keeps the largest threshold whose exact upper confidence bound on the risk is at most ε. α = 0.1 for "
    "every method. ER is the average loss of the answers that were served, ECP the share of questions for which the "
    "expert was called, and TP the tokens of all drafts and expert calls relative to always asking the expert without "
    "a draft, so that TP is above 100 % where drafts cost more than they save. Lines are means over the runs and bands "
    "are ± one standard deviation over the runs, cut off at 0 and at the largest possible value; the first 2 % of a "
    "stream, in which averages of a few answers vary widely, are not drawn. {streams} A printed number agrees if it "
    "lies within three standard errors of the difference (the paper's 100 runs and those made here) plus the rounding "
    "of the print, and a printed standard deviation if it is within a factor of two. Every number is also in a CSV "
    "file beside this page, and every figure in SVG, PDF and PNG files."
)
BUILTIN = (
    "The paper's data cannot be had: the streams are built-in tables. Their few shape parameters were fitted to the "
    "numbers that the paper prints (scripts/fit_builtin_tables.py), and to its statement that on MATH the threshold of "
    "B-PAC comes close to that of PAC. All other statements without numbers, and all figures of other policies, are "
    "results. Every run draws a new table and new coins from its own seed. The table tasks-like, which has features to "
    "learn from, follows no printed number: how much is saved on it follows from the noise that its features were "
    "given (replay/tables/builtin_tasks.py). The sections learned and segments shuffle one draw of it."
)
GIVEN = (
    "The streams are the given tables. Every run shuffles them with its own seed, except where the recorded order is "
    "kept."
)

# The built-in table with features. Shorter where every variant is replayed at five times its length, too.
TASKS = "tasks-like"
TASKS_PART = Part("Tasks", TASKS, rows=2000)
BENCHMARK_PARTS = (paper.MMLU, paper.MATH, paper.BBH, paper.MAGPIE)


@dataclass(frozen=True, slots=True)
class Measurements:
    """What is measured on real models.

    Parameters
    ----------
    prompting: measures Chain of Draft and NoThinking.
    judge: measures a judge.
    """

    prompting: MeasurePrompting
    judge: MeasureJudge


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


def builtin_studies(measurements: Measurements) -> list[Study]:
    """Every section on the built-in tables, in the order of the paper, and then our own."""
    with_features = ((TASKS_PART.label, builtin_table(TASKS)),)
    return [
        paper.FIGURE_1,
        paper.FIGURE_2,
        paper.FIGURE_3,
        Table1Study(measurements.prompting),
        paper.TABLE_2,
        JudgeStudy(measurements.judge),
        paper.FIGURE_5,
        paper.FIGURE_6,
        paper.FIGURE_7,
        paper.FIGURE_8,
        paper.FIGURE_9,
        OverheadStudy(),
        CascadeStudy(),
        GapStudy("summary", BENCHMARK_PARTS, 0.08),
        SavingsStudy((*BENCHMARK_PARTS, TASKS_PART), VARIANTS, builtin_cascades()),
        LearnedStudy(with_features),
        SegmentsStudy(with_features),
        CallsStudy((*BENCHMARK_PARTS, TASKS_PART), builtin_cascades()),
        CheapHoursStudy(BENCHMARK_PARTS),
        StallStudy(),
        *OWN,
        DriftStudy(),
        CertificateStudy(),
        HostileStudy(),
        OrderStudy(),
        FaultsStudy(),
        ReplicasStudy(),
    ]


def _unmeasured(_: Path) -> Any:
    raise BpacError("it was not asked for")


# For callers that need no real model.
UNMEASURED = Measurements(_unmeasured, _unmeasured)
# In the order of the paper, and then our own.
NAMES = tuple(study.name for study in builtin_studies(UNMEASURED))
# Sections that a table needs certain columns for, and these columns.
OF_COLUMNS = {
    "learned": "columns to learn from, such as draft_tokens, category or feature_NAME",
    "segments": f"a column {SEGMENT}",
}


def reproduce(
    names: Sequence[str],
    runs: int,
    out: Path,
    measurements: Measurements = UNMEASURED,
    *,
    tables: Sequence[GivenTable] = (),
    cascades: Sequence[GivenCascade] = (),
    inputs: Sequence[str | Path] = (),
    engine: Engine = ALL_CORES,
) -> Reproduced:
    """Make sections and write their numbers, figures and the report.

    Parameters
    ----------
    names: names of the sections; ``all`` for all of them.
    runs: number of replays of each method.
    out: folder to write to. Finished runs are saved there too, so that a stopped command resumes.
    measurements: what is measured on real models.
    tables: the user's tables, to be used instead of the built-in ones.
    cascades: the user's tables of cascades, likewise.
    inputs: the files that were read; none of them is overwritten.
    engine: where the replays run.
    """
    if tables or cascades:
        known: list[Study] = studies_of_tables(tables, measurements.prompting) if tables else []
        if cascades:
            # One table shows all tables, whether they have two models or more.
            pairs = next((study.parts for study in known if isinstance(study, SavingsStudy)), ())
            known = [study for study in known if not isinstance(study, SavingsStudy | CallsStudy)]
            known += [CascadeStudy(tuple(cascades)), SavingsStudy(pairs, VARIANTS, tuple(cascades))]
            known += [CallsStudy(pairs, tuple(cascades))]
    else:
        known = builtin_studies(measurements)
    available = [study.name for study in known]
    for name in names:
        if name in OF_COLUMNS and name not in available:
            raise InputError(f"{name} needs tables with {OF_COLUMNS[name]}: give them with --tables")
        one_of(name, "NAME", ("all", *available))
    studies = [study for study in known if "all" in names or study.name in names]
    if not studies:
        raise InputError("nothing to reproduce: give names of results, or all")
    names = ["checklist", *(f"{study.name}{end}" for study in studies for end in ("", "-paths", "-prompting", "-each"))]
    for name in names:
        refuse_overwriting({"--out": out / f"{name}.csv"}, inputs)
    check_installed()
    out.mkdir(parents=True, exist_ok=True)
    tasks = [list(study.tasks()) for study in studies]
    results = iter(run_tasks([task for of_study in tasks for task in of_study], runs, out / "runs", engine))
    folder = ResultsFolder(out)
    sections = []
    with tqdm(total=len(studies), desc="drawing", unit="section", leave=False, mininterval=0.5) as bar:
        for study, of_study in zip(studies, tasks, strict=True):
            bar.set_postfix_str(study.name)
            sections.append(study.section([next(results) for _ in of_study], folder))
            bar.update()
    write_checklist(sections, folder)
    report = out / "report.html"
    printed = [(section.number, one) for section in sections for one in section.findings if one.printed]
    overview = folder.write_figure("printed-numbers", printed_panels(printed), 1) if printed else []
    write_report(
        sections, report, methods=METHODS.format(streams=GIVEN if tables or cascades else BUILTIN), overview=overview
    )
    return Reproduced(sections, [*folder.written, report])
