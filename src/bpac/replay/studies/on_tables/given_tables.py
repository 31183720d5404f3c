"""The paper's figures made from tables of the user: every one that the columns of the tables allow."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from bpac.replay.paper import figures
from bpac.replay.paper.table_1 import COMPARISON, MeasurePrompting, Table1Study
from bpac.replay.studies.comparison import Part
from bpac.replay.studies.on_tables.calls import CallsStudy
from bpac.replay.studies.on_tables.cheap_hours import CheapHoursStudy
from bpac.replay.studies.on_tables.gap import GapStudy
from bpac.replay.studies.on_tables.learned import LearnedStudy
from bpac.replay.studies.on_tables.savings import SavingsStudy
from bpac.replay.studies.on_tables.segments import SEGMENT, SegmentsStudy
from bpac.replay.studies.on_tables.variants import VARIANTS
from bpac.replay.studies.study import Study
from bpac.replay.tables.table import Table

EPSILONS = (0.05, 0.08)
RECORDED = "The rows are in the order in which they were recorded: the first 50 are the calibration set of offline PAC."
# The score of the paper, which every table has.
DEFAULT = "uncertainty"


@dataclass(frozen=True, slots=True)
class GivenTable:
    """A table of the user.

    Parameters
    ----------
    name: its name in the report.
    scores: the table for each of its scores; the first is that of the column ``uncertainty``.
    """

    name: str
    scores: Mapping[str, Table]


def studies_of_tables(tables: Sequence[GivenTable], prompting: MeasurePrompting) -> list[Study]:
    """The sections for given tables.

    The order in which rows were recorded takes the place of the paper's changes of benchmark. Other scores are compared
    where a table has further columns of uncertainty. Panels of tokens are left out where tokens are not known.

    Parameters
    ----------
    tables: the tables.
    prompting: the answers of prompting methods that the user gave, to be shown beside the routers.
    """
    shuffled = tuple(Part(one.name, one.name, one.scores) for one in tables)
    recorded = tuple(replace(part, order="given") for part in shuffled)
    comparisons = [
        replace(figures.figure_1(recorded), title="The recorded order, with offline PAC", text=RECORDED),
        replace(figures.figure_2(recorded), title="The recorded order, with offline PAC", text=RECORDED),
        replace(figures.figure_3(shuffled), title="Online baselines"),
    ]
    scores = list(dict.fromkeys(score for one in tables for score in one.scores))
    if len(scores) > 1:
        names = {score: score.removeprefix(f"{DEFAULT}_").replace("_", " ") for score in scores}
        comparisons.append(replace(figures.table_2(shuffled, names), title="Other scores"))
    others = (figures.figure_5, figures.figure_6, figures.figure_7, figures.figure_8, figures.figure_9)
    comparisons += [build(shuffled) for build in others]
    studies: list[Study] = [replace(one, because="the tables are not the paper's") for one in comparisons]
    studies.insert(3, Table1Study(prompting, replace(COMPARISON, parts=shuffled, statements=())))
    raw = [(one.name, one.scores[DEFAULT]) for one in tables]
    if with_features := tuple((name, table) for name, table in raw if table.features):
        studies.append(LearnedStudy(with_features))
    if divided := tuple((name, table) for name, table in raw if SEGMENT in table.features):
        studies.append(SegmentsStudy(divided))
    gaps = (GapStudy(f"gap-{epsilon:g}", shuffled, epsilon) for epsilon in EPSILONS)
    return [*studies, *gaps, SavingsStudy(shuffled, VARIANTS), CallsStudy(shuffled), CheapHoursStudy(shuffled)]
