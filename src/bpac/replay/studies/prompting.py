"""Against prompting methods: Chain of Draft and NoThinking shorten every answer; a router shortens the easy ones."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bpac.replay.experiments import BOTH, PUBLISHED, SUMMARY_EPSILON, RoutingMethod
from bpac.replay.outcomes import Outcome, ReplayTask
from bpac.replay.parallel import Arrays
from bpac.replay.report import Section
from bpac.replay.studies.comparison import percents
from bpac.replay.studies.study import Folder, percent
from bpac.replay.tables.table import Table

STREAMS = ("mmlu-pro-like", "math-like")


@dataclass(frozen=True, slots=True)
class PromptingStudy:
    """The table of prompting methods.

    Parameters
    ----------
    graded: for each method, a table of its own graded answers against the expert's, where a user has them.
    """

    graded: Mapping[str, Table] = field(default_factory=dict)
    name: str = "prompting"

    def tasks(self) -> list[ReplayTask]:
        """The routers that stand beside the prompting methods."""
        methods = [RoutingMethod(label, policy, SUMMARY_EPSILON) for label, policy in BOTH]
        return [ReplayTask(method, stream) for stream in STREAMS for method in methods]

    def section(self, results: Sequence[Arrays], folder: Folder) -> Section:
        """ER and TP of every method, and where each row comes from."""
        header = ["method", "answers", "where from", "ER", "TP", "promise"]
        rows = []
        for task, arrays in zip(self.tasks(), results, strict=True):
            risk, _, tokens = percents(Outcome.of(task, arrays))
            rows.append([task.method.label, task.stream, "replayed", risk, tokens, f"≤ {SUMMARY_EPSILON:g}"])
        for stream in STREAMS:
            risk, _, tokens = PUBLISHED[stream]
            answers = stream.removesuffix("-like")
            rows.append(["B-PAC", answers, "the paper's figure", risk, tokens, f"≤ {SUMMARY_EPSILON:g}"])
        for method, table in self.graded.items():
            rows.append([method, f"{len(table)} of yours", "your graded answers", *_figures(table), "none"])
        for method in ("Chain of Draft", "NoThinking"):
            if method not in self.graded:
                rows.append([method, "", f'none yet: give --graded "{method}=TABLE"', "", "", "none"])
        folder.csv(self.name, header, rows)
        text = (
            "Chain of Draft and NoThinking prompt the expert to think less about every question. They have no "
            "threshold and promise nothing; their answers are graded like any others (bpac collect, grade and table)."
        )
        return Section(self.name, "Against Chain of Draft and NoThinking", text, "", header, rows)


def _figures(table: Table) -> tuple[str, str]:
    """Loss against the expert, and tokens against the expert's."""
    tokens = ""
    if table.draft_tokens is not None and table.expert_tokens is not None and table.expert_tokens.sum() > 0:
        tokens = percent(float(table.draft_tokens.sum() / table.expert_tokens.sum()))
    return percent(float(table.loss.mean())), tokens
