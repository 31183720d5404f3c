r"""MATH: 5,000 competition problems, answered in a box."""

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


def _read(cells: DatasetRow) -> Question:
    # The hub's copy has no field for the answer: it is the last box of the solution.
    if "answer" in cells.row:
        reference = cells.text("answer")
    else:
        boxed = boxes(cells.text("solution"))
        if not boxed:
            raise cells.wrong("solution", "a solution with its answer in a box")
        reference = boxed[-1]
    return Question(
        id=cells.id(cells.part or "math", "id", "unique_id"),
        prompt=cells.text("problem"),
        reference=reference,
        category=cells.optional("type", "subject"),
    )


def _instruct(question: Question) -> str:
    return f"{question.prompt}\n\nReason step by step, and put the final answer, and nothing else, in \\boxed{{}}."


def _verdict(question: Question, text: str, finished: bool) -> Verdict:
    return grade_mathematics(question.reference or "", text, finished)


MATH = Benchmark("math", HubSource("EleutherAI/hendrycks_math", parts=SUBJECTS), _read, _instruct, _verdict)
