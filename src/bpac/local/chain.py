"""``bpac chain``: collect, grade, table, replay and a report with the local model on held-out questions."""

import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bpac.arguments import whole
from bpac.collecting.table import build_table
from bpac.local.benchmark import COUNT
from bpac.local.chain_report import PairSummary, write_chain_report
from bpac.local.prompting import METHODS_COMPARED, collect_modes, prompting_rows
from bpac.local.server import MODEL
from bpac.output_files import whole_file
from bpac.replay.figures import check_installed


@dataclass(frozen=True, slots=True)
class ChainRun:
    """One run of ``bpac chain``; a run that was stopped can be continued.

    Parameters
    ----------
    out: the folder for all files.
    questions: number of held-out questions for both models (default: 5000).
    prompted: number of those questions on which prompting methods are tried (default: 500).
    seed: random seed of the questions (default: 0).
    runs: number of replays per policy (default: 50).
    model: the GGUF file of the model (default: the model in this package).
    """

    out: Path
    questions: int = COUNT
    prompted: int = 500
    seed: int = 0
    runs: int = 50
    model: Path = MODEL

    def __post_init__(self) -> None:
        whole(self.questions, "questions", 1)
        whole(self.prompted, "prompted", 0)
        whole(self.runs, "runs", 1)

    def run(self) -> dict[str, Any]:
        """Run all steps, with progress on standard error; returns the figures of the report."""
        began = time.monotonic()
        check_installed()
        prompted = min(self.prompted, self.questions)
        others = {mode: prompted for mode in METHODS_COMPARED if mode != "direct" and prompted}
        collected = collect_modes(self.out, {"direct": self.questions, **others}, self.seed, self.model)
        direct = collected.grades["direct"]
        rows = build_table(direct)
        table = self.out / "table.csv"
        rows.write(table)
        compared = {mode: grades[:prompted] for mode, grades in collected.grades.items()}
        prompting = prompting_rows(compared) if prompted else []
        figures = write_chain_report(PairSummary(direct, rows.summary(), table), prompting, self.runs, self.out)
        found = {
            "out": str(self.out),
            "questions": len(direct),
            "asked_now": collected.asked,
            "tokens_now": collected.tokens,
            "table": str(table),
            "report": str(self.out / "report.html"),
            **rows.summary(),
            **figures,
            "prompting": [asdict(row) for row in prompting],
            "seconds": round(time.monotonic() - began, 1),
        }
        with whole_file(self.out / "summary.json") as unfinished:
            unfinished.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
        return found
