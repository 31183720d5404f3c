"""Results that can be reproduced by name: numbers as CSV, pictures as PNG and SVG, and one page with all of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bpac.arguments import one_of
from bpac.errors import InputError
from bpac.output_files import refuse_overwriting
from bpac.replay.experiments import BOTH, Experiment, RoutingMethod
from bpac.replay.figures import check_installed
from bpac.replay.parallel import HERE, Engine, run_tasks
from bpac.replay.report import Section, write_report
from bpac.replay.studies import STUDIES, ComparisonStudy, Folder, GapStudy, PromptingStudy, Study
from bpac.replay.tables.table import Table

NAMES = tuple(study.name for study in STUDIES)
TABLE_EPSILONS = (0.05, 0.08)


@dataclass(frozen=True, slots=True)
class Reproduced:
    """What was reproduced.

    Parameters
    ----------
    sections: the results, in the order of the page.
    written: the files, the page last.
    """

    sections: list[Section]
    written: list[Path]


def reproduce(
    names: Sequence[str],
    runs: int,
    out: Path,
    *,
    tables: Mapping[str, Table] | None = None,
    graded: Mapping[str, Table] | None = None,
    inputs: Sequence[str | Path] = (),
    engine: Engine = HERE,
) -> Reproduced:
    """Reproduce results and write them: numbers, pictures and the page.

    Parameters
    ----------
    names: which; ``all`` for all; none for the given tables only.
    runs: replays of each method.
    out: where to write. Finished runs are kept there too, so that a stopped command can go on.
    tables: tables of one's own, to see what the policies would save on them.
    graded: graded answers of prompting methods, to stand in their table.
    inputs: the files that tables and graded answers were read from; none of them is overwritten.
    engine: where the replays run.
    """
    for name in names:
        one_of(name, "NAME", ("all", *NAMES))
    wanted = NAMES if "all" in names else names
    studies = [study for study in STUDIES if study.name in wanted]
    studies = [replace(s, graded=dict(graded or {})) if isinstance(s, PromptingStudy) else s for s in studies]
    studies += _of_tables(dict(tables or {}))
    if not studies:
        raise InputError("nothing to reproduce: give names, or tables with --tables")
    for study in studies:
        for name in (study.name, f"{study.name}-paths"):
            refuse_overwriting({"--out": out / f"{name}.csv"}, inputs)
    check_installed()
    out.mkdir(parents=True, exist_ok=True)
    tasks = [list(study.tasks()) for study in studies]
    results = iter(run_tasks([task for of_study in tasks for task in of_study], runs, out / "runs", engine))
    folder = Folder(out)
    sections = [
        study.section([next(results) for _ in of_study], folder) for study, of_study in zip(studies, tasks, strict=True)
    ]
    page = out / "report.html"
    write_report(sections, page)
    return Reproduced(sections, [*folder.written, page])


def _of_tables(tables: dict[str, Table]) -> list[Study]:
    """The gap to the oracle on all of them, and the paths of both policies on each."""
    if not tables:
        return []
    epsilon = TABLE_EPSILONS[0]
    methods = tuple(RoutingMethod(label, policy, epsilon) for label, policy in BOTH)
    paths = [
        ComparisonStudy(Experiment(f"table-{number}", f"What you would save: {name}", name, methods), table)
        for number, (name, table) in enumerate(tables.items(), start=1)
    ]
    return [*(GapStudy(tables, epsilon) for epsilon in TABLE_EPSILONS), *paths]
