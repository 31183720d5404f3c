"""The gap to the oracle: by how much the portfolio reduces the expert calls that the paper's policy makes beyond it."""

from collections.abc import Sequence
from dataclasses import dataclass

from bpac.replay.figures import draw_expert_calls
from bpac.replay.oracle import oracle_expert_call_rate
from bpac.replay.parallel import Arrays
from bpac.replay.studies.comparison import percents
from bpac.replay.studies.experiments import BOTH, PUBLISHED, SUMMARY_EPSILON, RoutingMethod
from bpac.replay.studies.replay_results import ReplayResult, ReplayTask
from bpac.replay.studies.report import ReportSection
from bpac.replay.studies.study import ResultsFolder, percent
from bpac.replay.tables.builtin import builtin_table
from bpac.replay.tables.table import Table

HEADER = ["stream", "method", "ER", "ECP", "TP", "gap to the oracle closed"]


def _both_policies(stream: str, epsilon: float, table: Table | None = None) -> list[ReplayTask]:
    return [ReplayTask(RoutingMethod(label, policy, epsilon), stream, table=table) for label, policy in BOTH]


def _results(tasks: Sequence[ReplayTask], arrays: Sequence[Arrays]) -> list[ReplayResult]:
    return [ReplayResult.of(task, one) for task, one in zip(tasks, arrays, strict=True)]


def closed(paper: float, portfolio: float, oracle: float) -> float | None:
    """The share of the gap that the portfolio closes; None if the paper's policy leaves no gap.

    Parameters
    ----------
    paper, portfolio, oracle: expert call rates.
    """
    return (paper - portfolio) / (paper - oracle) if paper > oracle else None


def _shown(share: float | None) -> str:
    return "" if share is None else f"{share:.0%}"


@dataclass(frozen=True, slots=True)
class SummaryStudy:
    """The figures that the paper prints, beside those of this package on the built-in tables."""

    name: str = "summary"

    def tasks(self) -> list[ReplayTask]:
        """The paper's policy and the portfolio on each built-in table."""
        return [task for stream in PUBLISHED for task in _both_policies(stream, SUMMARY_EPSILON)]

    def section(self, results: Sequence[Arrays], folder: ResultsFolder) -> ReportSection:
        """ER, ECP and TP that the paper prints, of its policy here, of the portfolio and of the oracle."""
        replays = _results(self.tasks(), results)
        rows: list[list[str]] = []
        bars, shares = {}, []
        for index, (stream, published) in enumerate(PUBLISHED.items()):
            paper, portfolio = replays[2 * index : 2 * index + 2]
            oracle = oracle_expert_call_rate(builtin_table(stream), SUMMARY_EPSILON)
            calls = (paper.final("expert_call_rate")[0], portfolio.final("expert_call_rate")[0], oracle)
            bars[stream] = calls
            share = closed(*calls)
            shares.append(share or 0.0)
            rows.append([stream, "printed in the paper, on its own data", *published, ""])
            rows.append([stream, "the paper's policy", *percents(paper), ""])
            rows.append([stream, "portfolio", *percents(portfolio), _shown(share)])
            rows.append([stream, "oracle, exploring 5 %", "", percent(oracle), "", ""])
        folder.write_csv(self.name, HEADER, rows)
        text = (
            f"ε = {SUMMARY_EPSILON}, {len(replays[0].paths)} runs. The built-in tables were generated so that the "
            "paper's policy has about the expert call rate and the token ratio that the paper prints; all other "
            f"figures are results. On average the portfolio closes {sum(shares) / len(shares):.0%} of the gap between "
            "the paper's policy and an oracle that knows every loss."
        )
        svg = folder.write_figure(self.name, draw_expert_calls(bars, SUMMARY_EPSILON))
        return ReportSection(self.name, "The paper's figures compared with this package's", text, svg, HEADER, rows)


@dataclass(frozen=True, slots=True)
class GapStudy:
    """The paper's policy, the portfolio and the oracle on the user's own tables.

    Parameters
    ----------
    tables: the tables by name.
    epsilon: promised bound on the loss.
    """

    tables: dict[str, Table]
    epsilon: float

    @property
    def name(self) -> str:
        """Its name in the report and of its files."""
        return f"gap-{self.epsilon:g}"

    def tasks(self) -> list[ReplayTask]:
        """The paper's policy and the portfolio on each table."""
        return [task for name, table in self.tables.items() for task in _both_policies(name, self.epsilon, table)]

    def section(self, results: Sequence[Arrays], folder: ResultsFolder) -> ReportSection:
        """The expert calls of each, and the share of the gap that is closed."""
        replays = _results(self.tasks(), results)
        rows, bars, shares = [], {}, []
        for index, (name, table) in enumerate(self.tables.items()):
            paper, portfolio = replays[2 * index : 2 * index + 2]
            oracle = oracle_expert_call_rate(table, self.epsilon)
            bars[name] = (paper.final("expert_call_rate")[0], portfolio.final("expert_call_rate")[0], oracle)
            share = closed(*bars[name])
            shares += [share] if share is not None else []
            rows.append([name, "paper", *percents(paper), ""])
            rows.append([name, "portfolio", *percents(portfolio), _shown(share)])
            rows.append([name, "oracle, exploring 5 %", "", percent(oracle), "", ""])
        folder.write_csv(self.name, HEADER, rows)
        mean = f" On average {sum(shares) / len(shares):.0%} of the gap is closed." if shares else ""
        text = f"Your tables, shuffled, {len(replays[0].paths)} runs, ε = {self.epsilon:g}.{mean}"
        svg = folder.write_figure(self.name, draw_expert_calls(bars, self.epsilon))
        title = f"Gap to the oracle on your tables, ε = {self.epsilon:g}"
        return ReportSection(self.name, title, text, svg, HEADER, rows)
