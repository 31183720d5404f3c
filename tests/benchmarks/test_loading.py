"""Loading questions: every published format is understood, and the error for a wrong row names it."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from bpac.benchmarks.registry import BENCHMARKS, named_benchmark
from bpac.errors import InputError, TableError

BENCH = Path(__file__).parents[2].parent / "shared" / "bench"

ROWS: dict[str, dict[str, Any]] = {
    "math": {"problem": "1 + 1?", "solution": "It is $\\boxed{\\frac{4}{2}}$.", "type": "Algebra", "level": "Level 1"},
    "mmlu-pro": {"question_id": 7, "question": "Which?", "options": ["a", "b"], "answer": "B", "answer_index": 1},
    "bbh": {"task": "navigate", "input": "Do you return?", "target": "No"},
    "magpie": {"uuid": "u", "instruction": "Write a poem."},
    "gsm8k": {"question": "1 + 1?", "answer": "1 + 1 = 2\n#### 2"},
    "alpaca-eval": {"instruction": "Write a poem.", "dataset": "koala"},
}


def write(path: Path, rows: list[Any]) -> Path:
    """Write rows to a file in the format of its ending."""
    text = json.dumps(rows) if ".jsonl" not in path.name else "".join(json.dumps(row) + "\n" for row in rows)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


@pytest.mark.parametrize("name", BENCHMARKS)
@pytest.mark.parametrize("ending", ["jsonl", "jsonl.gz", "json", "json.gz"])
def test_every_file_format_gives_the_same_question(tmp_path: Path, name: str, ending: str) -> None:
    """A question is loaded from each file format and can be asked."""
    benchmark = BENCHMARKS[name]
    (question,) = benchmark.load(write(tmp_path / f"questions.{ending}", [ROWS[name]]))
    (message,) = benchmark.ask(question)
    assert message["role"] == "user"
    assert question.prompt in message["content"]
    assert all(option in message["content"] for option in question.options)


@pytest.mark.parametrize(
    ("name", "reference"), [("math", "\\frac{4}{2}"), ("mmlu-pro", "B"), ("bbh", "No"), ("gsm8k", "2")]
)
def test_the_reference_is_found(tmp_path: Path, name: str, reference: str) -> None:
    """The correct answer is read from the field that the data set uses, and grades a reply."""
    benchmark = BENCHMARKS[name]
    (question,) = benchmark.load(write(tmp_path / "questions.jsonl", [ROWS[name]]))
    assert question.reference == reference
    assert benchmark.grade(question, f"The answer is ${reference}$.") is True
    assert benchmark.grade(question, "<think>Well, the answer is") is None


def test_open_questions_are_not_graded(tmp_path: Path) -> None:
    """Magpie and AlpacaEval have no correct answers, so the verdict is always unknown."""
    for name in ("magpie", "alpaca-eval"):
        (question,) = BENCHMARKS[name].load(write(tmp_path / f"{name}.jsonl", [ROWS[name]]))
        assert question.reference is None
        assert BENCHMARKS[name].grade(question, "Roses are red.") is None


def test_the_file_name_is_the_task_of_a_published_bbh_file(tmp_path: Path) -> None:
    """The published files of BBH contain a list of examples without the task."""
    path = tmp_path / "navigate.json"
    path.write_text(json.dumps({"canary": "…", "examples": [{"input": "Do you?", "target": "Yes"}]}), encoding="utf-8")
    (question,) = BENCHMARKS["bbh"].load(path)
    assert (question.id, question.category) == ("navigate-0", "navigate")


def test_the_index_is_used_if_the_letter_is_missing(tmp_path: Path) -> None:
    """A row of MMLU-Pro without a letter gets its answer from the index."""
    row = {key: value for key, value in ROWS["mmlu-pro"].items() if key != "answer"}
    (question,) = BENCHMARKS["mmlu-pro"].load(write(tmp_path / "questions.jsonl", [row]))
    assert question.reference == "B"


@pytest.mark.parametrize(
    ("name", "change", "error"),
    [
        ("math", {"problem": None}, "line 2, field problem: None is not a string with text"),
        (
            "math",
            {"solution": "Nothing is boxed."},
            "field solution: 'Nothing is boxed.' is not a solution with its answer",
        ),
        ("mmlu-pro", {"options": "ab"}, "field options: 'ab' is not a list of strings"),
        ("mmlu-pro", {"options": ["x"] * 11}, "is not a list of 2 to 10 strings"),
        ("mmlu-pro", {"answer": "K"}, "field answer: 'K' is not a letter from A to B"),
        ("bbh", {"task": "chess"}, "field task: 'chess' is not one of the 27 tasks of BBH"),
        ("bbh", {"target": ""}, "field target: '' is not a string with text"),
        ("gsm8k", {"answer": "two"}, "field answer: 'two' is not a solution that ends with ####"),
        ("magpie", {"instruction": 3}, "field instruction: 3 is not a string with text"),
    ],
)
def test_a_wrong_row_is_named(tmp_path: Path, name: str, change: dict[str, Any], error: str) -> None:
    """The error names the file, the line, the field and its value, in one line."""
    path = write(
        tmp_path / "questions.jsonl", [{**ROWS[name], "id": 1, "uuid": 1, "question_id": 1}, ROWS[name] | change]
    )
    with pytest.raises(TableError) as caught:
        BENCHMARKS[name].load(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: line 2")
    assert error in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("name", "content", "error"),
    [
        ("q.jsonl", b'{"problem": "x"}\n', "line 1 has no field solution; it has problem"),
        ("q.jsonl", b"{}\n{", "line 1 has no field"),
        ("q.jsonl", b"{", "line 1 is not JSON"),
        ("q.jsonl", b"[1]", "line 1 must be a JSON object"),
        ("q.json", b"{}", "must contain a list of questions"),
        ("q.json", b"[1]", "entry 1 must be a JSON object"),
        ("q.jsonl", b"\n", "the file contains no questions"),
        ("q.jsonl.gz", b"plain", "cannot be read"),
        ("q.jsonl", b"\xff", "cannot be read"),
        ("q.csv", b"", "must end in .jsonl or .json"),
    ],
)
def test_a_wrong_file_has_a_specific_error(tmp_path: Path, name: str, content: bytes, error: str) -> None:
    """The error names the file and says why it is not a benchmark file."""
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(TableError) as caught:
        BENCHMARKS["math"].load(path)
    assert str(path) in str(caught.value)
    assert error in str(caught.value)


def test_two_questions_with_one_id_are_refused(tmp_path: Path) -> None:
    """A duplicate id would mix up the answers to two questions."""
    with pytest.raises(TableError, match="line 2: the id '7' is also the id of an earlier row"):
        BENCHMARKS["mmlu-pro"].load(write(tmp_path / "questions.jsonl", [ROWS["mmlu-pro"]] * 2))


def test_benchmark_names_ignore_case_and_underscores() -> None:
    """A benchmark is found by its name in any case; the error for an unknown name lists the known ones."""
    assert named_benchmark(" BBH ").name == "bbh"
    assert named_benchmark("alpaca_eval").name == "alpaca-eval"
    with pytest.raises(InputError, match="'mmlu' is not known; use one of math, mmlu-pro, bbh, magpie"):
        named_benchmark("mmlu")


@pytest.mark.skipif(not BENCH.is_dir(), reason="the folder with the benchmark files does not exist")
@pytest.mark.parametrize(
    ("name", "file", "size"), [("gsm8k", "gsm8k_test", 1_319), ("alpaca-eval", "alpaca_eval_805", 805)]
)
def test_gsm8k_and_alpaca_eval_are_loaded_completely(name: str, file: str, size: int) -> None:
    """Every row is loaded, and every reference answer of GSM8K is graded correct."""
    benchmark = BENCHMARKS[name]
    questions = benchmark.load(BENCH / f"{file}.jsonl.gz")
    assert len(questions) == size
    if name == "gsm8k":
        assert all(benchmark.grade(question, f"So she has \\boxed{{{question.reference}}}.") for question in questions)
