r"""MATH: 5,000 competition problems with the answer in ``\boxed{}``."""

from bpac.benchmarks.benchmark import Benchmark, Question
from bpac.benchmarks.hub import HubSource
from bpac.benchmarks.rows import DatasetRow
from bpac.grading.mathematics.equivalence import grade_mathematics
from bpac.grading.text.answer_text import Verdict
from bpac.grading.text.boxes import boxes

SUBJECTS = (
    "algebra",
    "counting_and_probability",
    "geometry",
    "intermediate_algebra",
    "number_theory",
    "prealgebra",
    "precalculus",
)


def _read(row: DatasetRow) -> Question:
    # The data set on the hub has no field for the answer, which is the last box of the solution.
    if "answer" in row.fields:
        reference = row.text("answer")
    else:
        boxed = boxes(row.text("solution"))
        if not boxed:
            raise row.wrong("solution", "a solution with its answer in a box")
        reference = boxed[-1]
    return Question(
        id=row.id(row.part or "math", "id", "unique_id"),
        prompt=row.text("problem"),
        reference=reference,
        category=row.optional("type", "subject"),
    )


def _instruct(question: Question) -> str:
    return f"{question.prompt}\n\nReason step by step, and put the final answer, and nothing else, in \\boxed{{}}."


def _verdict(question: Question, text: str, finished: bool) -> Verdict:
    return grade_mathematics(question.reference or "", text, finished)


MATH = Benchmark("math", HubSource("EleutherAI/hendrycks_math", parts=SUBJECTS), _read, _instruct, _verdict)
