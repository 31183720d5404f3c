"""Loading from the Hugging Face hub, with a fake of the library ``datasets``."""

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from bpac.benchmarks.registry import BENCHMARKS
from bpac.errors import MissingExtra, TableError

HUB_ROWS: dict[str, dict[str, Any]] = {
    "EleutherAI/hendrycks_math": {"problem": "1 + 1?", "solution": "\\boxed{2}", "level": "Level 1", "type": "Algebra"},
    "TIGER-Lab/MMLU-Pro": {
        "question_id": 7,
        "question": "Which?",
        "options": ["a", "b"],
        "answer": "B",
        "category": "law",
    },
    "SaylorTwift/bbh": {"input": "Do you?", "target": "Yes"},
    "Magpie-Align/Magpie-Pro-300K-Filtered": {"uuid": "u", "instruction": "Write.", "response": "No."},
    "openai/gsm8k": {"question": "1 + 1?", "answer": "#### 2"},
    "tatsu-lab/alpaca_eval": {"dataset": "koala", "instruction": "Write.", "output": "No.", "generator": "g"},
}


@pytest.mark.parametrize("name", BENCHMARKS)
def test_every_benchmark_loads_from_the_hub(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Each benchmark requests its parts from the hub and makes questions with distinct ids from the rows."""
    calls: list[tuple[str, str | None, str]] = []

    def load_dataset(dataset: str, part: str | None, *, split: str, revision: str | None) -> list[dict[str, Any]]:
        calls.append((dataset, part, split))
        return [HUB_ROWS[dataset]]

    monkeypatch.setitem(sys.modules, "datasets", SimpleNamespace(load_dataset=load_dataset))
    source = BENCHMARKS[name].source
    questions = BENCHMARKS[name].load()
    assert [part or "" for _, part, _ in calls] == list(source.parts)
    assert all(split.startswith(source.split) for _, _, split in calls)
    assert len({question.id for question in questions}) == len(source.parts)


def test_a_bbh_question_from_the_hub_has_its_task(monkeypatch: pytest.MonkeyPatch) -> None:
    """On the hub a task is a configuration, which becomes the category of its questions."""
    library = SimpleNamespace(load_dataset=lambda *names, **settings: [{"input": "Do you?", "target": "Yes"}])
    monkeypatch.setitem(sys.modules, "datasets", library)
    assert len({question.category for question in BENCHMARKS["bbh"].load()}) == 27


def test_an_unreachable_hub_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error contains the data set and the error of the library."""

    def load_dataset(*names: str, **settings: str) -> None:
        raise ConnectionError("offline")

    monkeypatch.setitem(sys.modules, "datasets", SimpleNamespace(load_dataset=load_dataset))
    with pytest.raises(TableError, match=r"TIGER-Lab/MMLU-Pro.*offline"):
        BENCHMARKS["mmlu-pro"].load()


def test_a_wrong_row_of_the_hub_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the data set, the part, the row and the field."""
    monkeypatch.setitem(
        sys.modules, "datasets", SimpleNamespace(load_dataset=lambda *names, **settings: [{"question": 1}])
    )
    with pytest.raises(TableError, match="openai/gsm8k main test: row 1 has no field answer"):
        BENCHMARKS["gsm8k"].load()


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without ``datasets`` the error says what to install."""
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingExtra, match=r"datasets.*bpac\[datasets\]"):
        BENCHMARKS["math"].load()
