"""Losses: values, range, and errors."""

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpac.answer import Answer
from bpac.errors import InputError, SettingsError
from bpac.losses import AnswerLoss, ByTask, EmbeddingLoss, ToolCallLoss, correctness_loss, cosine_distance, mark_loss

marks = st.floats(1.0, 10.0)
vectors = st.lists(st.floats(-1e3, 1e3), min_size=3, max_size=3).filter(lambda vector: math.hypot(*vector) > 1e-6)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(-1e9, 1e9) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


def calling(*calls: tuple[str, Any]) -> Answer:
    """An answer with tool calls, given as names and arguments."""
    functions = [{"name": name, "arguments": arguments} for name, arguments in calls]
    return Answer("", tool_calls=tuple({"id": "x", "function": function} for function in functions))


@pytest.mark.parametrize(("draft", "expert", "loss"), [(1, 1, 0), (0, 1, 1), (1, 0, 0), (0, 0, 0)])
def test_the_loss_is_1_only_if_the_draft_is_wrong_and_the_expert_correct(draft: int, expert: int, loss: float) -> None:
    """If the correct answer is known, the loss is that of the paper."""
    assert correctness_loss(bool(draft), bool(expert)) == loss
    text = {0: "wrong", 1: "right"}
    assert AnswerLoss(str.__eq__, truth="right")(Answer(text[draft]), Answer(text[expert])) == loss


def test_without_a_correct_answer_the_expert_is_the_reference() -> None:
    """The loss is 1 if the draft's answer differs from the expert's by the given equality."""
    loss = AnswerLoss(lambda one, other: float(one) == float(other))
    assert loss(Answer("42.0"), Answer("42")) == 0.0
    assert loss(Answer("41"), Answer("42")) == 1.0


def test_the_loss_is_unknown_if_the_deciding_comparison_is_unknown() -> None:
    """An unknown comparison is not a loss of 0; with a correct answer it matters only if the loss depends on it."""

    def equal(one: str, other: str) -> bool | None:
        return None if "?" in one + other else one == other

    assert AnswerLoss(equal)(Answer("a?"), Answer("a")) is None
    with_truth = AnswerLoss(equal, truth="a")
    assert with_truth(Answer("?"), Answer("a")) is None
    assert with_truth(Answer("b"), Answer("?")) is None
    assert with_truth(Answer("a"), Answer("?")) == 0.0
    assert with_truth(Answer("?"), Answer("b")) == 0.0


@given(marks, marks, marks)
def test_mark_loss_decreases_with_the_mark_of_the_draft(draft: float, better: float, expert: float) -> None:
    """The loss is in [0, 1], 0 for a draft that is at least as good, and never larger for a better draft."""
    loss = mark_loss(draft, expert)
    assert 0.0 <= loss <= 1.0
    assert (loss == 0.0) is (draft >= expert)
    assert mark_loss(max(draft, better), expert) <= loss


def test_mark_loss_is_the_root_of_the_difference_over_nine() -> None:
    """Three values computed by hand."""
    assert mark_loss(1, 10) == 1.0
    assert mark_loss(6, 10) == pytest.approx(2 / 3)
    assert mark_loss(4, 4.25) == pytest.approx(1 / 6)


@pytest.mark.parametrize("mark", [0.0, 11.0, math.nan, math.inf, -1.0])
def test_a_mark_outside_1_to_10_is_an_error(mark: float) -> None:
    """The error holds for the mark of the draft and of the expert."""
    with pytest.raises(InputError, match="a mark must be from 1 to 10"):
        mark_loss(mark, 5.0)
    with pytest.raises(InputError, match="a mark must be from 1 to 10"):
        mark_loss(5.0, mark)


@given(vectors, vectors, st.floats(1e-3, 1e3))
def test_cosine_distance_is_symmetric_and_ignores_length(one: list[float], other: list[float], scale: float) -> None:
    """The distance is in [0, 1], symmetric, and 0 for vectors with the same direction."""
    distance = cosine_distance(one, other)
    assert 0.0 <= distance <= 1.0
    assert distance == pytest.approx(cosine_distance(other, one))
    assert cosine_distance(one, [scale * part for part in one]) == pytest.approx(0.0, abs=1e-9)
    assert cosine_distance(one, [-part for part in one]) == 1.0


@pytest.mark.parametrize("vector", [[0.0, 0.0], [math.nan, 1.0], [math.inf, 1.0], [1.0], [[1.0, 0.0]], [1e200, 1e200]])
def test_an_embedding_without_a_direction_is_an_error(vector: Any) -> None:
    """A vector that is zero, not finite or of another shape is an error."""
    with pytest.raises(InputError, match="embedding"), np.errstate(over="ignore"):
        cosine_distance(vector, [1e200, 0.0])


def test_embedding_loss_uses_the_given_function() -> None:
    """The loss is the cosine distance of the embeddings that the function returns."""
    loss = EmbeddingLoss(lambda text: [float(text.count("a")), float(text.count("b"))])
    assert loss(Answer("aab"), Answer("aab")) == pytest.approx(0.0)
    assert loss(Answer("a"), Answer("b")) == 1.0


@given(st.dictionaries(st.text(max_size=3), values, max_size=3))
def test_formatting_of_arguments_does_not_matter(arguments: dict[str, Any]) -> None:
    """The order of keys, spacing and escapes do not matter, and arguments may already be parsed."""
    backwards = json.dumps(dict(reversed(arguments.items())), indent=2, ensure_ascii=False)
    for written in (backwards, arguments):
        assert ToolCallLoss()(calling(("f", json.dumps(arguments))), calling(("f", written))) == 0.0


@pytest.mark.parametrize(
    ("ours", "theirs", "loss"),
    [
        ('{"a": 1}', '{"a": 1.0}', 0), ('{"a": 1}', '{"a": true}', 1), ('{"a": 0}', '{"a": false}', 1),
        ('{"a": 1}', '{"a": "1"}', 1), ('{"a": null}', "{}", 1), ('{"a": [1, 2]}', '{"a": [2, 1]}', 1),
        ('{"a": {"b": 1, "c": [true]}}', '{"a": {"c": [true], "b": 1}}', 0), ("{}", "", 0), ("{}", None, 0),
        ("{", "{", 1), ("[1]", "[1]", 1), ('{"a": NaN}', '{"a": NaN}', 1), ("42", "42", 1), (42, 42, 1),
        ("[" * 100_000, "{}", 1), ('{"a": 1, "a": 2}', '{"a": 2}', 1), ('{"a": 1e999}', '{"a": 1e998}', 1),
        ('{"a": 0.1}', '{"a": 0.10000000000000001}', 1),
        ('{"a": 100000000000000001.0}', '{"a": 100000000000000000}', 1),
        ('{"a": 1e1000000000000000000000}', "{}", 1), ('{"a": "A"}', '{"a": "a"}', 1), ('{"a": 0.1}', {"a": 0.1}, 0),
    ],
)  # fmt: skip
def test_arguments_are_compared_as_values(ours: Any, theirs: Any, loss: float) -> None:
    """1 equals 1.0 but neither true nor "1"; arguments that are not a JSON object are a loss even if identical."""
    assert ToolCallLoss()(calling(("f", ours)), calling(("f", theirs))) == loss
    assert ToolCallLoss()(calling(("f", theirs)), calling(("f", ours))) == loss


def test_names_and_number_of_calls_matter() -> None:
    """The order of calls matters only with ``ordered=True``."""
    one, two = ("f", '{"a": 1}'), ("g", "{}")
    assert ToolCallLoss()(calling(one, two), calling(two, one)) == 0.0
    assert ToolCallLoss(ordered=True)(calling(one, two), calling(two, one)) == 1.0
    assert ToolCallLoss(ordered=True)(calling(one, two), calling(one, two)) == 0.0
    assert ToolCallLoss()(calling(one), calling(one, one)) == 1.0
    assert ToolCallLoss()(calling(one), calling(("h", '{"a": 1}'))) == 1.0
    assert ToolCallLoss()(calling(one), Answer("a")) == 1.0


@pytest.mark.parametrize("call", [{}, {"function": None}, {"function": {"arguments": "{}"}}, {"function": {"name": 1}}])
def test_a_malformed_call_is_a_loss(call: dict[str, Any]) -> None:
    """A malformed call is a loss of 1 even if both answers contain it."""
    broken = Answer("", tool_calls=(call,))
    assert ToolCallLoss()(broken, broken) == 1.0


def test_answers_without_calls_are_equal_unless_a_text_loss_is_given() -> None:
    """Without tool calls the loss is 0, or that of the given loss of texts."""
    assert ToolCallLoss()(Answer("a"), Answer("b")) == 0.0
    with_text = ToolCallLoss(text=AnswerLoss(str.__eq__))
    assert with_text(Answer("a"), Answer("b")) == 1.0
    assert with_text(calling(("f", "{}")), calling(("f", "{}"))) == 0.0


def test_each_task_has_its_own_loss() -> None:
    """A task without a loss gets the loss ``otherwise``, or is an error that lists the tasks."""
    by_task = ByTask({"tools": ToolCallLoss(), "text": AnswerLoss(str.__eq__)})
    assert by_task.of("tools")(Answer("a"), Answer("b")) == 0.0
    assert by_task.of("text")(Answer("a"), Answer("b")) == 1.0
    with pytest.raises(InputError, match="no loss for the task 'maths'; the tasks are text, tools"):
        by_task.of("maths")
    assert ByTask({}, otherwise=ToolCallLoss()).of("maths") == ToolCallLoss()
    with pytest.raises(SettingsError, match="at least one task"):
        ByTask()
