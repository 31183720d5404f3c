"""GSM8K: 1,319 grade-school word problems; every answer is a number."""

from bpac.benchmarks.benchmark import Benchmark, Question
from bpac.benchmarks.hub import HubSource
from bpac.benchmarks.rows import DatasetRow
from bpac.grading.mathematics.equivalence import grade_mathematics
from bpac.grading.text.answer_text import Verdict


def _read(row: DatasetRow) -> Question:
    _, hashes, reference = row.text("answer").rpartition("####")
    if not hashes or not reference.strip():
        raise row.wrong("answer", "a solution that ends with #### and a number")
    return Question(id=row.id("gsm8k", "id"), prompt=row.text("question"), reference=reference.strip())


def _instruct(question: Question) -> str:
    return f"{question.prompt}\n\nReason step by step, and put the final number, and nothing else, in \\boxed{{}}."


def _verdict(question: Question, text: str, finished: bool) -> Verdict:
    return grade_mathematics(question.reference or "", text, finished)


GSM8K = Benchmark("gsm8k", HubSource("openai/gsm8k", parts=("main",)), _read, _instruct, _verdict)
