"""The report of ``bpac chain``: accuracy of both models, quality of each score, and savings of a router."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bpac.collecting.grade import Grade
from bpac.local.prompting import PromptingRow
from bpac.local.questions import KINDS
from bpac.replay.oracle import oracle_policy
from bpac.replay.parallel import run_tasks
from bpac.replay.studies.comparison import Comparison, Part, percents
from bpac.replay.studies.methods import ALPHA, B_PAC, PORTFOLIO, RoutingMethod, compared
from bpac.replay.studies.reporting.replay_results import METRICS, ReplayResult, ReplayTask
from bpac.replay.studies.reporting.report import ReportSection, TableOfNumbers, write_report
from bpac.replay.studies.study import ResultsFolder, percent
from bpac.replay.tables.reading import read_table
from bpac.replay.tables.table import Table
from bpac.routing.policies import Paper, Policy, Portfolio

EPSILONS = (0.02, 0.05, 0.08)
STREAM = "local pair"


@dataclass(frozen=True, slots=True)
class PairSummary:
    """The results of the two models without a router.

    Parameters
    ----------
    grades: the grades of all questions.
    summary: the statistics of the table.
    table: the file of the table.
    """

    grades: Sequence[Grade]
    summary: dict[str, Any]
    table: Path


def write_chain_report(pair: PairSummary, prompting: Sequence[PromptingRow], runs: int, out: Path) -> dict[str, Any]:
    """Replay the table, write the report with its figures, and return the numbers.

    Parameters
    ----------
    pair: the results of the two models.
    prompting: the results of prompting methods; without any, the report has no section about them.
    runs: number of replays per policy.
    out: the folder for the report.
    """
    table = read_table(pair.table)
    comparisons = [_comparison(epsilon, table) for epsilon in EPSILONS]
    scores = list(pair.summary["auroc"])
    by_score = [
        ReplayTask(
            RoutingMethod(name, Portfolio(), epsilon), STREAM, table=read_table(pair.table, f"uncertainty_{name}")
        )
        for name in scores
        for epsilon in EPSILONS
    ]
    tasks = [task for comparison in comparisons for task in comparison.tasks()] + by_score
    results = run_tasks(tasks, runs, out / "runs")
    outcomes = [ReplayResult.of(task, arrays) for task, arrays in zip(tasks, results, strict=True)]
    routed, scored = outcomes[: -len(by_score)], outcomes[-len(by_score) :]
    folder, given = ResultsFolder(out), iter(results)
    sections = [
        _pair_section(pair),
        _saved_section(routed, runs),
        _score_section(pair, scores, scored),
        *(one.section([next(given) for _ in one.tasks()], folder) for one in comparisons),
        *([_prompting_section(prompting)] if prompting else []),
    ]
    write_report(sections, out / "report.html", title="bpac: the local pair of models")
    return {"runs": runs, "routers": [_figures(outcome) for outcome in routed]}


def _comparison(epsilon: float, table: Table) -> Comparison:
    policies: dict[str, Policy] = {B_PAC: Paper(), PORTFOLIO: Portfolio(), "oracle": oracle_policy(table, epsilon)}
    part = Part(STREAM, STREAM, {"uncertainty": table})
    title = f"The local pair at ε = {epsilon:g}"
    return Comparison(f"epsilon-{epsilon:g}", title, (part,), compared(epsilon, policies))


def _figures(outcome: ReplayResult) -> dict[str, Any]:
    served = outcome.paths[:, METRICS.index("empirical_risk"), -1]
    label = "paper" if outcome.method.label == B_PAC else outcome.method.label  # the policy's name on the command line
    figures: dict[str, Any] = {"epsilon": outcome.method.epsilon, "policy": label}
    for metric in METRICS:
        mean, std = outcome.final(metric)
        figures[metric] = None if math.isnan(mean) else {"mean": mean, "std": std}
    above = float((served > outcome.method.epsilon).mean())
    return figures | {"above_epsilon": above, "worst_empirical_risk": float(served.max())}


def _pair_section(pair: PairSummary) -> ReportSection:
    rows = []
    for kind in KINDS:
        grades = [grade for grade in pair.grades if grade.category == kind and not grade.unknown]
        if not grades:
            continue
        shares = [
            sum(bool(getattr(grade, name)) for grade in grades) / len(grades)
            for name in ("draft_correct", "expert_correct", "loss")
        ]
        rows.append([kind, str(len(grades)), *map(percent, shares)])
    summary = pair.summary
    shares = [summary["draft_accuracy"], summary["expert_accuracy"], summary["loss"]]
    rows.append(["all", str(summary["rows"]), *map(percent, shares)])
    reasons = "; ".join(f"{why}: {count}" for why, count in summary["reasons"].items())
    text = (
        f"One small model answered {len(pair.grades)} questions that it was not trained on in two ways: the draft "
        f"answers directly ({summary['draft_tokens']:.1f} tokens on average), the expert thinks first "
        f"({summary['expert_tokens']:.1f} tokens). "
        f"{summary['left_out']} questions are left out because a result is unknown"
        f"{f' ({reasons})' if reasons else ''}."
    )
    header = ["kind", "questions", "draft correct", "expert correct", "loss if every draft is kept"]
    return ReportSection("pair", "The two models", text, [], TableOfNumbers(header, rows))


def _saved_section(outcomes: Sequence[ReplayResult], runs: int) -> ReportSection:
    rows = []
    for outcome in outcomes:
        risk, calls, tokens = percents(outcome)
        figures = _figures(outcome)
        extremes = [percent(figures[name]) for name in ("above_epsilon", "worst_empirical_risk")]
        rows.append([f"{outcome.method.epsilon:g}", outcome.method.label, calls, tokens, risk, *extremes])
    text = (
        f"{runs} replays in shuffled order. Tokens are those of all drafts and of the expert calls, relative to always "
        "calling the expert. The actual loss is the average loss of the served answers. At most a share "
        f"α = {ALPHA:g} of the replays may have an unsafe threshold at any time. The oracle knows every loss in "
        "advance and has no guarantee: its risk is ε in expectation."
    )
    header = ["ε", "router", "expert calls", "tokens", "actual loss", "replays above ε", "worst replay"]
    return ReportSection("saved", "Savings of a router", text, [], TableOfNumbers(header, rows))


def _score_section(pair: PairSummary, names: Sequence[str], outcomes: Sequence[ReplayResult]) -> ReportSection:
    rows = []
    for number, name in enumerate(names):
        calls = [percents(outcome)[1] for outcome in outcomes[number * len(EPSILONS) : (number + 1) * len(EPSILONS)]]
        known = pair.summary["auroc"][name]
        rows.append([name, "" if known is None else f"{known:.3f}", *calls])
    text = (
        "AUROC is the probability that a wrong draft is more uncertain than a correct one. The other columns show how "
        "often the policy portfolio calls the expert with that score."
    )
    header = ["score", "AUROC", *(f"expert calls at ε = {epsilon:g}" for epsilon in EPSILONS)]
    return ReportSection("scores", "The scores", text, [], TableOfNumbers(header, rows))


def _prompting_section(rows: Sequence[PromptingRow]) -> ReportSection:
    shown = [
        [
            row.method,
            str(row.questions),
            _known(row.accuracy),
            _known(row.loss),
            _known(row.token_ratio),
            percent(row.unknown / row.questions),
        ]
        for row in rows
    ]
    text = (
        "Chain of Draft and NoThinking make the thinking model think less about every question: the first asks for "
        "short notes, the second begins the answer with reasoning that is already finished. The model was trained on "
        "both prompts, exactly as bpac collect --method sends them. The loss is the share of questions that the expert "
        "answers correctly and the method does not. Tokens include the reasoning. Neither method has a guarantee."
    )
    header = ["method", "questions", "correct", "loss", "tokens relative to the expert", "not graded"]
    return ReportSection("prompting", "Chain of Draft and NoThinking", text, [], TableOfNumbers(header, shown))


def _known(share: float | None) -> str:
    return "" if share is None else percent(share)
