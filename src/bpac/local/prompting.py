"""Chain of Draft and NoThinking on the local model: answers collected and graded in every mode, one row per method."""

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bpac.arguments import whole
from bpac.collecting.answers_file import ROLES, Role
from bpac.collecting.collect import CollectionRun, CollectionSummary
from bpac.collecting.grade import Grade, GradingRun
from bpac.collecting.requests import ModelServer, RequestTemplate
from bpac.local.answer_modes import MODES, AnswerMode
from bpac.local.benchmark import LOCAL, benchmark_questions
from bpac.local.server import MODEL, LocalServer

SLOTS = 8
LOGPROBS = {"logprobs": True, "top_logprobs": 10}
# The expert, and the methods that are compared with it.
EXPERT = "thinking"
LABELS: Mapping[str, str] = {
    EXPERT: "Thinking (the expert)",
    "direct": "Direct answers (the draft)",
    "chain-of-draft": "Chain of Draft",
    "nothinking": "NoThinking",
}
METHODS_COMPARED = tuple(name for name in LABELS if name != EXPERT)


@dataclass(frozen=True, slots=True)
class PromptingRow:
    """The results of a method on held-out questions.

    Parameters
    ----------
    method: the name of the method, for readers.
    questions: number of questions.
    right, unknown: number of correct answers, and of questions that could not be graded.
    expert_right: number of correct answers of the expert, which thinks about every question.
    tokens: mean number of tokens per answer, including reasoning; none if no answer has a known number.
    token_ratio: that mean divided by the expert's.
    accuracy: share of correct answers among the graded questions; none if there are none.
    loss: share of the graded questions that the expert answers correctly and the method does not.
    """

    method: str
    questions: int
    right: int
    unknown: int
    expert_right: int
    tokens: float | None
    token_ratio: float | None
    accuracy: float | None
    loss: float | None


@dataclass(frozen=True, slots=True)
class CollectedAnswers:
    """Answers in several modes, each graded against the expert's.

    Parameters
    ----------
    grades: for each mode, the grades in the order of the questions.
    asked, tokens: number of requests sent and of tokens generated in this run; the other answers were collected before.
    """

    grades: Mapping[str, Sequence[Grade]]
    asked: int
    tokens: int


def measure_prompting(out: Path, questions: int = 500, seed: int = 0, model: Path = MODEL) -> list[PromptingRow]:
    """One row for thinking, direct answers, Chain of Draft and NoThinking, with progress on standard error.

    Parameters
    ----------
    out: the folder for the answers and grades; a folder from an earlier run is continued.
    questions: number of held-out questions (default: 500).
    seed: random seed of the questions (default: 0).
    model: the GGUF file of the model (default: the model in this package).
    """
    whole(questions, "questions", 1)
    return prompting_rows(collect_modes(out, dict.fromkeys(METHODS_COMPARED, questions), seed, model).grades)


def collect_modes(out: Path, counts: Mapping[str, int], seed: int = 0, model: Path = MODEL) -> CollectedAnswers:
    """Ask the local model held-out questions in several modes and grade its answers against the expert's.

    Parameters
    ----------
    out: the folder for all files; a folder from an earlier run is continued.
    counts: for each mode, the number of questions; all modes start with the same questions.
    seed: random seed of the questions (default: 0).
    model: the GGUF file of the model (default: the model in this package).
    """
    with LocalServer(model=model, slots=SLOTS) as server:
        summaries = [_collect(server, out, MODES[name], count, seed) for name, count in counts.items()]
    # The folder may contain answers to more questions, from an earlier run.
    grades = {name: _grade(out, name)[:count] for name, count in counts.items()}
    return CollectedAnswers(grades, sum(one.asked for one in summaries), sum(one.tokens for one in summaries))


def prompting_rows(grades: Mapping[str, Sequence[Grade]]) -> list[PromptingRow]:
    """A row for the expert, and one for each mode that is compared with it.

    Parameters
    ----------
    grades: for each mode, the grades of the same questions.

    >>> grade = Grade("1", "", "", loss=1.0, draft_correct=False, expert_correct=True, draft_tokens=3, expert_tokens=12)
    >>> [(row.method, row.accuracy, row.loss, row.token_ratio) for row in prompting_rows({"nothinking": [grade]})]
    [('Thinking (the expert)', 1.0, 0.0, 1.0), ('NoThinking', 0.0, 1.0, 0.25)]
    """
    first = next(iter(grades.values()))
    return [_row(EXPERT, "expert", first), *(_row(name, "draft", found) for name, found in grades.items())]


def _collect(server: LocalServer, out: Path, mode: AnswerMode, count: int, seed: int) -> CollectionSummary:
    templates: dict[Role, RequestTemplate] = {
        "draft": RequestTemplate(server.name, {**mode.body(), **LOGPROBS}, mode.method),
        "expert": RequestTemplate(server.name, MODES[EXPERT].body()),
    }
    with server.model.open("rb") as file:
        # A model that is trained again keeps its name but gives other answers.
        model = hashlib.file_digest(file, "sha256").hexdigest()[:16]
    collection = CollectionRun(
        LOCAL,
        benchmark_questions(count, seed),
        templates,
        _answers(out, mode.name),
        concurrency=SLOTS,
        more={"seed": seed, "model_file": model},
    )
    where = ModelServer(server.base_url, server.name, timeout=120.0)
    return collection.run(dict.fromkeys(ROLES, where))


def _grade(out: Path, mode: str) -> list[Grade]:
    answers = _answers(out, mode)
    return asyncio.run(GradingRun(LOCAL, answers, answers.with_name("grades.jsonl")).run())


def _answers(out: Path, mode: str) -> Path:
    return (out if mode == "direct" else out / mode) / "answers.jsonl"


def _row(name: str, role: Role, grades: Sequence[Grade]) -> PromptingRow:
    known = [grade for grade in grades if grade.loss is not None]
    right = [getattr(grade, f"{role}_correct") is True for grade in grades]
    tokens, expert_tokens = (_mean([getattr(grade, f"{one}_tokens") for grade in grades]) for one in (role, "expert"))
    return PromptingRow(
        method=LABELS[name],
        questions=len(grades),
        right=sum(right),
        unknown=sum(getattr(grade, f"{role}_correct") is None for grade in grades),
        expert_right=sum(grade.expert_correct is True for grade in grades),
        tokens=tokens,
        token_ratio=tokens / expert_tokens if tokens and expert_tokens else None,
        accuracy=_mean([float(getattr(grade, f"{role}_correct") is True) for grade in known]),
        loss=_mean([grade.loss if role == "draft" else 0.0 for grade in known]),
    )


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
