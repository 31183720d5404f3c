"""Routing compared with prompting methods: Chain of Draft and NoThinking shorten every answer, a router only some."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bpac.replay.parallel import Arrays
from bpac.replay.studies.comparison import percents
from bpac.replay.studies.experiments import BOTH, PUBLISHED, SUMMARY_EPSILON, RoutingMethod
from bpac.replay.studies.replay_results import ReplayResult, ReplayTask
from bpac.replay.studies.report import ReportSection
from bpac.replay.studies.study import ResultsFolder, percent
from bpac.replay.tables.table import Table

STREAMS = ("mmlu-pro-like", "math-like")


@dataclass(frozen=True, slots=True)
class PromptingStudy:
    """The table of prompting methods.

    Parameters
    ----------
    graded: for each method, a table of its answers graded against the expert's, if the user gave one.
    """

    graded: Mapping[str, Table] = field(default_factory=dict)
    name: str = "prompting"

    def tasks(self) -> list[ReplayTask]:
        """The routers that the prompting methods are compared with."""
        methods = [RoutingMethod(label, policy, SUMMARY_EPSILON) for label, policy in BOTH]
        return [ReplayTask(method, stream) for stream in STREAMS for method in methods]

    def section(self, results: Sequence[Arrays], folder: ResultsFolder) -> ReportSection:
        """ER and TP of every method, with the source of each row."""
        header = ["method", "answers", "where from", "ER", "TP", "promise"]
        rows = []
        for task, arrays in zip(self.tasks(), results, strict=True):
            risk, _, tokens = percents(ReplayResult.of(task, arrays))
            rows.append([task.method.label, task.stream, "replayed", risk, tokens, f"≤ {SUMMARY_EPSILON:g}"])
        for stream in STREAMS:
            risk, _, tokens = PUBLISHED[stream]
            answers = stream.removesuffix("-like")
            rows.append(["B-PAC", answers, "printed in the paper", risk, tokens, f"≤ {SUMMARY_EPSILON:g}"])
        for method, table in self.graded.items():
            rows.append([method, f"{len(table)} of yours", "your graded answers", *_loss_and_tokens(table), "none"])
        for method in ("Chain of Draft", "NoThinking"):
            if method not in self.graded:
                rows.append([method, "", f'none yet: give --graded "{method}=TABLE"', "", "", "none"])
        folder.write_csv(self.name, header, rows)
        text = (
            "Chain of Draft and NoThinking prompt the expert to think less about every question. They have no "
            "threshold and make no promise. Their answers are graded like all others (bpac collect, bpac grade and "
            "bpac table)."
        )
        return ReportSection(self.name, "Compared with Chain of Draft and NoThinking", text, "", header, rows)


def _loss_and_tokens(table: Table) -> tuple[str, str]:
    """Average loss against the expert, and tokens relative to the expert's."""
    tokens = ""
    if table.draft_tokens is not None and table.expert_tokens is not None and table.expert_tokens.sum() > 0:
        tokens = percent(float(table.draft_tokens.sum() / table.expert_tokens.sum()))
    return percent(float(table.loss.mean())), tokens
