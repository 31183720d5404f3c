"""``bpac chain``: collect, grade, table, replay and a report with the local model on held-out questions."""

import asyncio
import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bpac.arguments import whole
from bpac.benchmarks.benchmark import Question
from bpac.benchmarks.prompting import METHODS
from bpac.collecting.answers_file import ROLES, Role
from bpac.collecting.collect import CollectionRun, CollectionSummary
from bpac.collecting.grade import Grade, GradingRun
from bpac.collecting.requests import ModelServer, RequestTemplate
from bpac.collecting.table import build_table
from bpac.local.benchmark import COUNT, LOCAL, benchmark_questions
from bpac.local.chain_report import PairSummary, PromptingRow, write_chain_report
from bpac.local.server import MODEL, LocalServer
from bpac.output_files import whole_file
from bpac.replay.figures import check_installed

# Greedy decoding, with enough tokens for the longest reasoning that the model was trained on.
BODY = {"temperature": 0.0, "max_tokens": 400}
LOGPROBS = {"logprobs": True, "top_logprobs": 10}
SLOTS = 8
# The prompting method that each run measures. The draft's chat template begins the answer with empty reasoning.
PROMPTING = {
    "direct": "NoThinking, in the model's own format",
    "nothinking": "NoThinking, in words",
    "chain-of-draft": "Chain of Draft",
}


def _thinking(on: bool) -> dict[str, Any]:
    return {**BODY, "chat_template_kwargs": {"enable_thinking": on}}


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
        questions = benchmark_questions(self.questions, self.seed)
        prompted = questions[: self.prompted]
        with LocalServer(model=self.model, slots=SLOTS) as server:
            collected = {"direct": self._collect(server, questions, "direct")}
            if prompted:
                others = (method for method in PROMPTING if method != "direct")
                collected |= {method: self._collect(server, prompted, method) for method in others}
        grades = {method: self._grade(method) for method in collected}
        # The folder may contain answers to more questions, from an earlier run.
        grades = {method: found[: len(questions)] for method, found in grades.items()}
        rows = build_table(grades["direct"])
        table = self.out / "table.csv"
        rows.write(table)
        prompting = [
            _prompting_row(PROMPTING[name], found[: len(prompted)]) for name, found in grades.items() if prompted
        ]
        figures = write_chain_report(
            PairSummary(grades["direct"], rows.summary(), table), prompting, self.runs, self.out
        )
        found = {
            "out": str(self.out),
            "questions": len(questions),
            "asked_now": sum(one.asked for one in collected.values()),
            "tokens_now": sum(one.tokens for one in collected.values()),
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

    def _collect(self, server: LocalServer, questions: Sequence[Question], method: str) -> CollectionSummary:
        # Prompting methods shorten the reasoning of a model that thinks, so they are used with thinking on.
        direct = method == "direct"
        templates: dict[Role, RequestTemplate] = {
            "draft": RequestTemplate(server.name, {**_thinking(not direct), **LOGPROBS}, METHODS[method]),
            "expert": RequestTemplate(server.name, _thinking(True)),
        }
        with self.model.open("rb") as file:
            # A model that is trained again keeps its name but gives other answers.
            model = hashlib.file_digest(file, "sha256").hexdigest()[:16]
        collection = CollectionRun(
            LOCAL,
            questions,
            templates,
            self._answers(method),
            concurrency=SLOTS,
            more={"seed": self.seed, "model_file": model},
        )
        where = ModelServer(server.base_url, server.name, timeout=120.0)
        return collection.run(dict.fromkeys(ROLES, where))

    def _grade(self, method: str) -> list[Grade]:
        answers = self._answers(method)
        return asyncio.run(GradingRun(LOCAL, answers, answers.with_name("grades.jsonl")).run())

    def _answers(self, method: str) -> Path:
        return (self.out if method == "direct" else self.out / method) / "answers.jsonl"


def _prompting_row(method: str, grades: Sequence[Grade]) -> PromptingRow:
    lengths = [[g.draft_tokens for g in grades if g.draft_tokens], [g.expert_tokens for g in grades if g.expert_tokens]]
    draft, expert = (sum(tokens) / len(tokens) if tokens else None for tokens in lengths)
    return PromptingRow(
        method=method,
        questions=len(grades),
        right=sum(grade.draft_correct is True for grade in grades),
        unknown=sum(grade.draft_correct is None for grade in grades),
        expert_right=sum(grade.expert_correct is True for grade in grades),
        tokens=draft,
        token_ratio=draft / expert if draft and expert else None,
    )
