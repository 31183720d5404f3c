"""Loading questions: every published form is understood, and a bad row is named."""

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
    """A file with these rows in the form its name asks for."""
    text = json.dumps(rows) if ".jsonl" not in path.name else "".join(json.dumps(row) + "\n" for row in rows)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


@pytest.mark.parametrize("name", BENCHMARKS)
@pytest.mark.parametrize("ending", ["jsonl", "jsonl.gz", "json", "json.gz"])
def test_every_form_of_file_gives_the_same_question(tmp_path: Path, name: str, ending: str) -> None:
    """A question reads the same from each kind of file, and can be asked."""
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
    """The right answer is read from wherever the data set keeps it, and grades a reply."""
    benchmark = BENCHMARKS[name]
    (question,) = benchmark.load(write(tmp_path / "questions.jsonl", [ROWS[name]]))
    assert question.reference == reference
    assert benchmark.grade(question, f"The answer is ${reference}$.") is True
    assert benchmark.grade(question, "<think>Well, the answer is") is None


def test_open_questions_are_not_graded(tmp_path: Path) -> None:
    """Magpie and AlpacaEval have no right answers: their verdict is always unknown."""
    for name in ("magpie", "alpaca-eval"):
        (question,) = BENCHMARKS[name].load(write(tmp_path / f"{name}.jsonl", [ROWS[name]]))
        assert question.reference is None
        assert BENCHMARKS[name].grade(question, "Roses are red.") is None


def test_a_published_file_of_a_task_is_named_after_it(tmp_path: Path) -> None:
    """BBH's own files hold a list of examples without the task, which is the file's name."""
    path = tmp_path / "navigate.json"
    path.write_text(json.dumps({"canary": "…", "examples": [{"input": "Do you?", "target": "Yes"}]}), encoding="utf-8")
    (question,) = BENCHMARKS["bbh"].load(path)
    assert (question.id, question.category) == ("navigate-0", "navigate")


def test_the_index_serves_where_there_is_no_letter(tmp_path: Path) -> None:
    """MMLU-Pro's index is used when the letter is missing."""
    row = {key: value for key, value in ROWS["mmlu-pro"].items() if key != "answer"}
    (question,) = BENCHMARKS["mmlu-pro"].load(write(tmp_path / "questions.jsonl", [row]))
    assert question.reference == "B"


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("math", {"problem": None}, "line 2, field problem: None is not a text"),
        (
            "math",
            {"solution": "Nothing is boxed."},
            "field solution: 'Nothing is boxed.' is not a solution with its answer",
        ),
        ("mmlu-pro", {"options": "ab"}, "field options: 'ab' is not a list of texts"),
        ("mmlu-pro", {"options": ["x"] * 11}, "is not a list of 2 to 10 texts"),
        ("mmlu-pro", {"answer": "K"}, "field answer: 'K' is not a letter from A to B"),
        ("bbh", {"task": "chess"}, "field task: 'chess' is not one of BBH's 27 tasks"),
        ("bbh", {"target": ""}, "field target: '' is not a text"),
        ("gsm8k", {"answer": "two"}, "field answer: 'two' is not a solution that ends with ####"),
        ("magpie", {"instruction": 3}, "field instruction: 3 is not a text"),
    ],
)
def test_a_bad_row_is_named(tmp_path: Path, name: str, change: dict[str, Any], said: str) -> None:
    """The error names the file, the line, the field and what is in it, on one line."""
    path = write(
        tmp_path / "questions.jsonl", [{**ROWS[name], "id": 1, "uuid": 1, "question_id": 1}, ROWS[name] | change]
    )
    with pytest.raises(TableError) as caught:
        BENCHMARKS[name].load(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: line 2")
    assert said in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("q.jsonl", b'{"problem": "x"}\n', "line 1 has no field solution; it has problem"),
        ("q.jsonl", b"{}\n{", "line 1 has no field"),
        ("q.jsonl", b"{", "line 1 is not JSON"),
        ("q.jsonl", b"[1]", "line 1 must be a JSON object"),
        ("q.json", b"{}", "must hold a list of questions"),
        ("q.json", b"[1]", "entry 1 must be a JSON object"),
        ("q.jsonl", b"\n", "there are no questions in it"),
        ("q.jsonl.gz", b"plain", "cannot be read"),
        ("q.jsonl", b"\xff", "cannot be read"),
        ("q.csv", b"", "ends in .jsonl or .json"),
    ],
)
def test_a_bad_file_is_explained(tmp_path: Path, name: str, content: bytes, said: str) -> None:
    """Each way in which a file cannot be a benchmark has its own words."""
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(TableError) as caught:
        BENCHMARKS["math"].load(path)
    assert str(path) in str(caught.value)
    assert said in str(caught.value)


def test_two_questions_of_one_name_are_refused(tmp_path: Path) -> None:
    """An id that stands twice would mix up two questions' answers."""
    with pytest.raises(TableError, match="line 2: the id '7' stands in an earlier row too"):
        BENCHMARKS["mmlu-pro"].load(write(tmp_path / "questions.jsonl", [ROWS["mmlu-pro"]] * 2))


def test_names_of_benchmarks() -> None:
    """A benchmark is found by its name however it is typed; an unknown name is told the known ones."""
    assert named_benchmark(" BBH ").name == "bbh"
    assert named_benchmark("alpaca_eval").name == "alpaca-eval"
    with pytest.raises(InputError, match="'mmlu' is not known; give one of math, mmlu-pro, bbh, magpie"):
        named_benchmark("mmlu")


@pytest.mark.skipif(not BENCH.is_dir(), reason="the benchmarks' files are not beside the project")
@pytest.mark.parametrize(
    ("name", "file", "size"), [("gsm8k", "gsm8k_test", 1_319), ("alpaca-eval", "alpaca_eval_805", 805)]
)
def test_the_smaller_sets_are_wholly_loaded(name: str, file: str, size: int) -> None:
    """GSM8K and AlpacaEval are read to the last row, and every sum's answer grades itself right."""
    benchmark = BENCHMARKS[name]
    questions = benchmark.load(BENCH / f"{file}.jsonl.gz")
    assert len(questions) == size
    if name == "gsm8k":
        assert all(benchmark.grade(question, f"So she has \\boxed{{{question.reference}}}.") for question in questions)
