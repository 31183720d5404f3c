"""The whole chain on the local pair: held-out questions, both answers, grades, a table, replays and a report."""

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

# The likeliest token always; room for the longest thought that the model was taught.
BODY = {"temperature": 0.0, "max_tokens": 400}
LOGPROBS = {"logprobs": True, "top_logprobs": 10}
SLOTS = 8
# What each run shows of prompting. With the draft's template the model finds an empty thought in its mouth.
PROMPTING = {
    "direct": "NoThinking, in the model's own format",
    "nothinking": "NoThinking, in words",
    "chain-of-draft": "Chain of Draft",
}


def _thinking(on: bool) -> dict[str, Any]:
    return {**BODY, "chat_template_kwargs": {"enable_thinking": on}}


@dataclass(frozen=True, slots=True)
class ChainRun:
    """What is asked of the local pair, and where everything is kept.

    Parameters
    ----------
    out: the folder; a chain that was stopped goes on from what it finds there.
    questions: how many held-out questions both models are asked.
    prompted: how many of them the prompting methods are tried on.
    seed: which questions.
    runs: replays of each policy.
    model: the GGUF file.
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
        """Everything, with progress on standard error; returns the figures of the report."""
        began = time.monotonic()
        check_installed()
        questions = benchmark_questions(self.questions, self.seed)
        some = questions[: self.prompted]
        with LocalServer(model=self.model, slots=SLOTS) as server:
            collected = {"direct": self._collect(server, questions, "direct")}
            if some:
                collected |= {method: self._collect(server, some, method) for method in PROMPTING if method != "direct"}
        grades = {method: self._grade(method) for method in collected}
        # The folder may hold answers to more questions, from a longer chain.
        grades = {method: found[: len(questions)] for method, found in grades.items()}
        rows = build_table(grades["direct"])
        table = self.out / "table.csv"
        rows.write(table)
        prompting = [_prompting_row(PROMPTING[name], found[: len(some)]) for name, found in grades.items() if some]
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
        # Prompting methods are for models that think: they shorten what the expert would think.
        direct = method == "direct"
        templates: dict[Role, RequestTemplate] = {
            "draft": RequestTemplate(server.name, {**_thinking(not direct), **LOGPROBS}, METHODS[method]),
            "expert": RequestTemplate(server.name, _thinking(True)),
        }
        with self.model.open("rb") as file:
            # Its name stays when it is trained anew; its answers do not.
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
