"""The stall: safe thresholds at which the wealth of the paper's bet shrinks on average (MATH section 2)."""

from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields

from bpac.betting.payoff import Terms
from bpac.betting.wealth.bets import AdaptiveBet
from bpac.betting.wealth.growth import best_bet, log_growth, settled_bet
from bpac.replay.figures import stall_panel
from bpac.replay.parallel import Arrays, Task
from bpac.replay.studies.reporting.report import ReportSection, TableOfNumbers
from bpac.replay.studies.study import ResultsFolder

# The risks in the table, and in the figure.
TABLE_RISKS = (0.020, 0.030, 0.040, 0.045, 0.050, 0.060)
FIGURE_RISKS = tuple(0.015 + 0.0005 * i for i in range(131))


@dataclass(frozen=True, slots=True)
class StallRow:
    """Log-growth of wealth per round at a threshold of that risk.

    Parameters
    ----------
    risk: true risk of the threshold.
    paper_bet: the bet that the paper's rule settles on.
    paper_growth, best_growth: log-growth per round with that bet, and with the best one.
    """

    risk: float
    paper_bet: float
    paper_growth: float
    best_growth: float


def stall_rows(risks: tuple[float, ...] = TABLE_RISKS, epsilon: float = 0.08, rate: float = 0.05) -> list[StallRow]:
    """The log-growth per round of the paper's bet and of the best bet, for thresholds of these risks.

    Parameters
    ----------
    risks: true risks of the thresholds.
    epsilon: promised bound on the loss.
    rate: exploration rate.

    >>> [round(row.paper_growth, 5) for row in stall_rows((0.03, 0.04))]
    [0.00016, -0.00106]
    """
    terms = Terms(epsilon, rate)
    rows = []
    for risk in risks:
        bet = settled_bet(terms, risk, rate, AdaptiveBet())
        best = log_growth(terms, risk, rate, best_bet(terms, risk, rate))
        rows.append(StallRow(risk, bet, log_growth(terms, risk, rate, bet), best))
    return rows


@dataclass(frozen=True, slots=True)
class StallStudy:
    """The risks at which the wealth of the paper's bet shrinks although the threshold is safe."""

    name: str = "stall"

    def tasks(self) -> list[Task]:
        """None: nothing is random here."""
        return []

    def section(self, results: Sequence[Arrays], folder: ResultsFolder) -> ReportSection:
        """Log-growth per round of both bets."""
        header = [field.name for field in fields(StallRow)]
        rows = [astuple(row) for row in stall_rows()]
        folder.write_csv(self.name, header, rows)
        drawn = stall_rows(FIGURE_RISKS)
        panel = stall_panel(
            [row.risk for row in drawn],
            [row.paper_growth for row in drawn],
            [row.best_growth for row in drawn],
            epsilon=0.08,
        )
        shown = [[f"{value:.5f}" for value in row] for row in rows]
        text = (
            "Log-growth of wealth per round at ε = 0.08, if every draft below the threshold is explored at rate 0.05."
        )
        panels = folder.write_figure(self.name, [panel], 1)
        names = ["risk of the threshold", "B-PAC's bet", "growth with B-PAC's bet", "growth with the best bet"]
        return ReportSection(self.name, "Where B-PAC's bet stalls", text, panels, TableOfNumbers(names, shown))
