"""The cost of the update: seconds for 1,000 steps on 1,001 thresholds, beside a plain transcription."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from bpac.replay.paper.transcription import transcription
from bpac.replay.parallel import Arrays, Task
from bpac.replay.studies.methods import ALPHA, B_PAC, PORTFOLIO
from bpac.replay.studies.reporting.report import ReportSection, TableOfNumbers
from bpac.replay.studies.reporting.statements import PAPER_RUNS, Finding, mark_of
from bpac.replay.studies.study import ResultsFolder
from bpac.replay.tables.builtin import builtin_table
from bpac.routing.coins import ListedCoins
from bpac.routing.policies import Paper, Policy, Portfolio
from bpac.routing.router import Router

STEPS = 1000
EPSILON = 0.08
PRINTED = "0.046"
REPEATS = 7
TRANSCRIPTION = "Algorithm 1 in plain numpy"


@dataclass(frozen=True, slots=True)
class OverheadStudy:
    """The time that routing itself takes."""

    name: str = "overhead"

    def tasks(self) -> list[Task]:
        """None: times are measured when nothing else runs."""
        return []

    def section(self, results: Sequence[Arrays], folder: ResultsFolder) -> ReportSection:
        """Seconds for 1,000 steps, beside the paper's figure and the transcription in the same run."""
        seconds = measure()
        plain = seconds[TRANSCRIPTION]
        folder.write_csv(
            self.name, ["method", "steps", "seconds"], [(name, STEPS, value) for name, value in seconds.items()]
        )
        fast = seconds[B_PAC] <= float(PRINTED)
        because = (
            f"this machine is slower: Algorithm 1 in plain numpy takes {plain:.3f} s on it, "
            f"{plain / seconds[B_PAC]:.1f} times as long as B-PAC here"
        )
        finding = Finding(
            f"{B_PAC}: {STEPS:,} steps of decide and update on 1,001 thresholds take {PRINTED} s",
            f"{PRINTED} s",
            f"{seconds[B_PAC]:.4f} s",
            fast,
            "" if fast else because,
        )
        rows = [[name, f"{value:.4f}", f"{plain / value:.1f}"] for name, value in seconds.items()]
        return ReportSection(
            self.name,
            "The cost of the update",
            f"The median of {REPEATS} passes over the first {STEPS:,} questions of mmlu-pro-like; the methods take "
            "turns in one process. The statement agrees if B-PAC takes at most as long here as in the paper.",
            [],
            TableOfNumbers(["method", f"seconds for {STEPS:,} steps", "times faster than plain numpy"], rows),
            number="Text",
            mark=mark_of([finding], PAPER_RUNS),
            findings=[finding],
        )


def measure() -> dict[str, float]:
    """The median seconds for 1,000 steps of the transcription, of B-PAC and of the portfolio."""
    table = builtin_table("mmlu-pro-like").take(np.arange(STEPS))
    questions = table.uncertainty.tolist(), table.loss.tolist()
    coins = np.random.default_rng(0).random(STEPS).tolist()
    calls: dict[str, Callable[[], object]] = {
        TRANSCRIPTION: lambda: transcription(*questions, coins, EPSILON, ALPHA),
        B_PAC: lambda: _play(Paper(), *questions, coins),
        PORTFOLIO: lambda: _play(Portfolio(), *questions, coins),
    }
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(REPEATS):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - start)
    return {name: sorted(passes)[REPEATS // 2] for name, passes in times.items()}


def _play(policy: Policy, uncertainties: Sequence[float], losses: Sequence[float], coins: Sequence[float]) -> None:
    router = Router(EPSILON, ALPHA, policy, coins=ListedCoins(coins))
    for uncertainty, loss in zip(uncertainties, losses, strict=True):
        decision = router.decide(uncertainty)
        if decision.call_expert:
            router.observe(decision, loss)
