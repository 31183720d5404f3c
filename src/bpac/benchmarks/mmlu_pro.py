"""MMLU-Pro: 12,032 multiple-choice questions from fourteen subjects, with up to ten options each."""

import string

from bpac.benchmarks.benchmark import Benchmark, Question
from bpac.benchmarks.hub import HubSource
from bpac.benchmarks.rows import DatasetRow
from bpac.grading.choices.options import grade_option
from bpac.grading.text.answer_text import Verdict

MOST_OPTIONS = 10


def _read(row: DatasetRow) -> Question:
    options = row.texts("options")
    if not 2 <= len(options) <= MOST_OPTIONS:
        raise row.wrong("options", f"a list of 2 to {MOST_OPTIONS} strings")
    letters = string.ascii_uppercase[: len(options)]
    # The letter has priority: in one question of the published data set the index names a wrong option.
    if "answer" in row.fields:
        reference = row.text("answer")
        if reference not in tuple(letters):
            raise row.wrong("answer", f"a letter from A to {letters[-1]}")
    else:
        index = row.fields.get("answer_index")
        if not isinstance(index, int) or not 0 <= index < len(options):
            raise row.wrong("answer_index", f"a number from 0 to {len(options) - 1}")
        reference = letters[index]
    return Question(
        id=row.id("mmlu-pro", "question_id", "id"),
        prompt=row.text("question"),
        reference=reference,
        category=row.optional("category"),
        options=options,
    )


def _instruct(question: Question) -> str:
    options = "\n".join(
        f"({letter}) {text}" for letter, text in zip(string.ascii_uppercase, question.options, strict=False)
    )
    return (
        f"{question.prompt}\n\nOptions:\n{options}\n\n"
        "Reason step by step, and end with a line of its own: The answer is (X). X is the letter of the right option."
    )


def _verdict(question: Question, text: str, finished: bool) -> Verdict:
    return grade_option(question.reference or "", text, question.options, finished)


MMLU_PRO = Benchmark("mmlu-pro", HubSource("TIGER-Lab/MMLU-Pro"), _read, _instruct, _verdict)
