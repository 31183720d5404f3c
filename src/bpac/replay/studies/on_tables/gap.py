"""The gap to the oracle: by how much the portfolio reduces the expert calls that B-PAC makes beyond it."""

from collections.abc import Sequence
from dataclasses import dataclass

from bpac.replay.figures import expert_call_bars
from bpac.replay.oracle import oracle_expert_call_rate
from bpac.replay.parallel import Arrays
from bpac.replay.studies.comparison import Part, percents
from bpac.replay.studies.methods import BOTH, RoutingMethod
from bpac.replay.studies.reporting.replay_results import ReplayResult, ReplayTask
from bpac.replay.studies.reporting.report import ReportSection, TableOfNumbers
from bpac.replay.studies.study import ResultsFolder, percent
from bpac.replay.tables.builtin import builtin_table

METRICS = ("empirical_risk", "expert_call_rate", "token_ratio")


def closed(paper: float, portfolio: float, oracle: float) -> float | None:
    """The share of the gap that the portfolio closes; None if B-PAC leaves no gap.

    Parameters
    ----------
    paper, portfolio, oracle: expert call rates.
    """
    return (paper - portfolio) / (paper - oracle) if paper > oracle else None


@dataclass(frozen=True, slots=True)
class GapStudy:
    """B-PAC, the portfolio and the oracle on several streams.

    Parameters
    ----------
    name: its name on the command line and of its files.
    parts: the streams.
    epsilon: promised bound on the loss.
    """

    name: str
    parts: tuple[Part, ...]
    epsilon: float

    def tasks(self) -> list[ReplayTask]:
        """Both policies on each stream."""
        methods = [RoutingMethod(label, policy, self.epsilon) for label, policy in BOTH]
        return [part.task(method) for part in self.parts for method in methods]

    def section(self, results: Sequence[Arrays], folder: ResultsFolder) -> ReportSection:
        """The expert calls of each, and the share of the gap that is closed."""
        replays = [ReplayResult.of(task, arrays) for task, arrays in zip(self.tasks(), results, strict=True)]
        numbers, rows, bars, shares = [], [], {}, []
        for index, part in enumerate(self.parts):
            both = replays[2 * index : 2 * index + 2]
            oracle = self._oracle(part)
            rates = [one.final("expert_call_rate")[0] for one in both]
            bars[part.label] = (rates[0], rates[1], oracle)
            share = closed(*bars[part.label])
            shares += [share] if share is not None else []
            for one in both:
                final = (value for metric in METRICS for value in one.final(metric))
                numbers.append((part.label, one.method.label, *final, share))
                rows.append([part.label, one.method.label, *percents(one), ""])
            numbers.append((part.label, "oracle", None, None, oracle, 0.0, None, None, None))
            rows[-1][-1] = "" if share is None else f"{share:.0%}"
            rows.append([part.label, "oracle, exploring 5 %", "", percent(oracle), "", ""])
        columns = [f"{metric}_{part}" for metric in METRICS for part in ("mean", "std")]
        folder.write_csv(self.name, ["stream", "method", *columns, "gap_closed"], numbers)
        mean = f" On average {sum(shares) / len(shares):.0%} of the gap is closed." if shares else ""
        text = (
            f"{len(replays[0].paths)} runs, ε = {self.epsilon:g}. The oracle knows every loss in advance. The gap is "
            f"the share of expert calls that B-PAC makes beyond those of the oracle.{mean}"
        )
        panels = folder.write_figure(self.name, [expert_call_bars(bars, self.epsilon)], 1)
        header = ["stream", "method", "ER", "ECP", "TP", "gap closed"]
        title = f"The gap to the oracle at ε = {self.epsilon:g}"
        return ReportSection(self.name, title, text, panels, TableOfNumbers(header, rows))

    def _oracle(self, part: Part) -> float:
        table = builtin_table(part.stream) if part.tables is None else part.tables["uncertainty"]
        return oracle_expert_call_rate(table, self.epsilon)
