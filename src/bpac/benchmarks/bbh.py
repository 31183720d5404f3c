"""BIG-Bench Hard: 6,511 questions in 27 tasks, each with its own kind of answer."""

from bpac.benchmarks.benchmark import Benchmark, Question
from bpac.benchmarks.hub import HubSource
from bpac.benchmarks.rows import DatasetRow
from bpac.errors import TableError
from bpac.grading.choices.bbh_tasks import TASKS, grade_bbh, kind_of
from bpac.grading.text.answer_text import Verdict


def _read(row: DatasetRow) -> Question:
    # The published files have no field for the task; the file name is the task.
    task = row.optional("task") or row.part
    if task not in TASKS:
        raise TableError(f"{row.place}, field task: {task!r} is not one of the 27 tasks of BBH")
    return Question(id=row.id(task, "id"), prompt=row.text("input"), reference=row.text("target"), category=task)


def _instruct(question: Question) -> str:
    return (
        f"{question.prompt}\n\nReason step by step, and end with a line of its own: The answer is X. "
        f"X is {kind_of(question.category)}."
    )


def _verdict(question: Question, text: str, finished: bool) -> Verdict:
    return grade_bbh(question.category, question.reference or "", text, question.prompt, finished)


BBH = Benchmark("bbh", HubSource("SaylorTwift/bbh", parts=tuple(TASKS)), _read, _instruct, _verdict)
