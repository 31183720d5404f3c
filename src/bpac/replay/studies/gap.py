"""The gap to the oracle: how much of the way from the paper's policy to it the portfolio goes."""

from collections.abc import Sequence
from dataclasses import dataclass

from bpac.replay.experiments import BOTH, PUBLISHED, SUMMARY_EPSILON, RoutingMethod
from bpac.replay.figures import draw_summary
from bpac.replay.outcomes import Outcome, ReplayTask
from bpac.replay.parallel import Arrays
from bpac.replay.replay import oracle_expert_call_rate
from bpac.replay.report import Section
from bpac.replay.studies.comparison import percents
from bpac.replay.studies.study import Folder, percent
from bpac.replay.tables.builtin import builtin_table
from bpac.replay.tables.table import Table

HEADER = ["stream", "method", "ER", "ECP", "TP", "gap to the oracle closed"]


def _pair(stream: str, epsilon: float, rows: int | None = None, table: Table | None = None) -> list[ReplayTask]:
    return [ReplayTask(RoutingMethod(label, policy, epsilon), stream, rows, table) for label, policy in BOTH]


def _outcomes(tasks: Sequence[ReplayTask], results: Sequence[Arrays]) -> list[Outcome]:
    return [Outcome.of(task, arrays) for task, arrays in zip(tasks, results, strict=True)]


def closed(paper: float, portfolio: float, oracle: float) -> float | None:
    """The share of the gap that is closed; none where the paper's policy leaves none."""
    return (paper - portfolio) / (paper - oracle) if paper > oracle else None


def _shown(share: float | None) -> str:
    return "" if share is None else f"{share:.0%}"


@dataclass(frozen=True, slots=True)
class Summary:
    """The paper's figures beside ours, on the built-in streams."""

    name: str = "summary"

    def tasks(self) -> list[ReplayTask]:
        """The paper's policy and the portfolio on each stream."""
        return [task for stream in PUBLISHED for task in _pair(stream, SUMMARY_EPSILON)]

    def section(self, results: Sequence[Arrays], folder: Folder) -> Section:
        """Paper / ours, the paper's policy / ours, portfolio / oracle."""
        outcomes = _outcomes(self.tasks(), results)
        rows: list[list[str]] = []
        bars, shares = {}, []
        for index, (stream, published) in enumerate(PUBLISHED.items()):
            paper, portfolio = outcomes[2 * index : 2 * index + 2]
            oracle = oracle_expert_call_rate(builtin_table(stream), SUMMARY_EPSILON)
            calls = (paper.final("expert_call_rate")[0], portfolio.final("expert_call_rate")[0], oracle)
            bars[stream] = calls
            share = closed(*calls)
            shares.append(share or 0.0)
            rows.append([stream, "the paper, on its own stream", *published, ""])
            rows.append([stream, "ours, the paper's policy", *percents(paper), ""])
            rows.append([stream, "ours, portfolio", *percents(portfolio), _shown(share)])
            rows.append([stream, "the oracle, exploring 5 %", "", percent(oracle), "", ""])
        folder.csv(self.name, HEADER, rows)
        text = (
            f"At ε = {SUMMARY_EPSILON}, {len(outcomes[0].paths)} runs. The built-in streams were shaped so that the "
            "paper's policy has about the paper's expert call rate and token ratio; everything else was found, not "
            f"shaped. On average the portfolio closes {sum(shares) / len(shares):.0%} of the gap between the paper's "
            "policy and an oracle that knows every loss."
        )
        picture = folder.picture(self.name, draw_summary(bars, SUMMARY_EPSILON))
        return Section(self.name, "The paper's figures and ours", text, picture, HEADER, rows)


@dataclass(frozen=True, slots=True)
class GapStudy:
    """Users' own tables: the paper's policy, the portfolio and the oracle.

    Parameters
    ----------
    tables: by name.
    epsilon: the promise.
    """

    tables: dict[str, Table]
    epsilon: float

    @property
    def name(self) -> str:
        """What it is called in the report."""
        return f"gap-{self.epsilon:g}"

    def tasks(self) -> list[ReplayTask]:
        """The paper's policy and the portfolio on each table."""
        return [task for name, table in self.tables.items() for task in _pair(name, self.epsilon, table=table)]

    def section(self, results: Sequence[Arrays], folder: Folder) -> Section:
        """Expert calls of each, and the share of the gap that is closed."""
        outcomes = _outcomes(self.tasks(), results)
        rows, bars, shares = [], {}, []
        for index, (name, table) in enumerate(self.tables.items()):
            paper, portfolio = outcomes[2 * index : 2 * index + 2]
            oracle = oracle_expert_call_rate(table, self.epsilon)
            bars[name] = (paper.final("expert_call_rate")[0], portfolio.final("expert_call_rate")[0], oracle)
            share = closed(*bars[name])
            shares += [share] if share is not None else []
            rows.append([name, "paper", *percents(paper), ""])
            rows.append([name, "portfolio", *percents(portfolio), _shown(share)])
            rows.append([name, "the oracle, exploring 5 %", "", percent(oracle), "", ""])
        folder.csv(self.name, HEADER, rows)
        mean = f" On average {sum(shares) / len(shares):.0%} of the gap is closed." if shares else ""
        text = f"Your tables, shuffled, {len(outcomes[0].paths)} runs at ε = {self.epsilon:g}.{mean}"
        picture = folder.picture(self.name, draw_summary(bars, self.epsilon))
        title = f"Gap to the oracle on your tables, ε = {self.epsilon:g}"
        return Section(self.name, title, text, picture, HEADER, rows)
