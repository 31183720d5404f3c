"""Files of own questions, which may hold answers that were recorded earlier; ``bpac import`` writes such files.

Each line is a question (``bpac.benchmarks.own``) and may have ``recorded``: the answers of ``draft`` and ``expert``,
with the model that gave each.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bpac.answer import Answer
from bpac.benchmarks.benchmark import Question
from bpac.benchmarks.own import OWN
from bpac.benchmarks.rows import DatasetRow, file_rows
from bpac.collecting.answers_file import ROLES, Role, answer_line, read_answer
from bpac.errors import TableError

# The parts of a recorded answer that may be left out.
_OPTIONAL = {"reasoning": "", "completion_tokens": 0, "prompt_tokens": None, "finish_reason": "stop"}


@dataclass(frozen=True, slots=True)
class QuestionFile:
    """The questions of a file, and the answers that are recorded there.

    Parameters
    ----------
    questions: the questions.
    recorded: the answers by question and role.
    models: how many recorded answers each model gave, by role.
    """

    questions: tuple[Question, ...]
    recorded: dict[str, dict[Role, Answer]] = field(default_factory=dict)
    models: dict[Role, Counter[str]] = field(default_factory=lambda: {role: Counter() for role in ROLES})


def read_question_file(path: Path) -> QuestionFile:
    """Read a ``.jsonl`` or ``.json`` file (each also ``.gz``); an error names the line and the field."""
    found = QuestionFile(OWN.load(path))
    for row, question in zip(file_rows(path), found.questions, strict=True):
        recorded = row.fields.get("recorded") or {}
        if not isinstance(recorded, Mapping) or set(recorded) - set(ROLES):
            raise row.wrong("recorded", "an object with the answers of draft and expert")
        for role in ROLES:
            if recorded.get(role) is not None:
                found.recorded.setdefault(question.id, {})[role] = _answer(row, role, recorded[role])
                found.models[role][str(recorded[role].get("model") or "")] += 1
    return found


def question_line(question: Question, recorded: Mapping[Role, tuple[str, Answer]]) -> dict[str, Any]:
    """The line of a question, as JSON values.

    Parameters
    ----------
    question: the question.
    recorded: the answers that are known, each with the model that gave it.

    >>> question_line(Question("1", "6 · 7?"), {})
    {'id': '1', 'prompt': '6 · 7?'}
    """
    line: dict[str, Any] = {"id": question.id}
    line |= {"messages": list(question.messages)} if question.messages else {"prompt": question.prompt}
    line |= {"reference": question.reference} if question.reference is not None else {}
    line |= {"category": question.category} if question.category else {}
    if recorded:
        line["recorded"] = {role: {"model": model, **answer_line(answer)} for role, (model, answer) in recorded.items()}
    return line


def _answer(row: DatasetRow, role: Role, line: Any) -> Answer:
    try:
        return read_answer(
            {"reasoning": "", "completion_tokens": 0, "prompt_tokens": None, "finish_reason": "stop"} | line
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise TableError(f"{row.place}, field recorded: the answer of the {role} cannot be read ({error!r})") from error
