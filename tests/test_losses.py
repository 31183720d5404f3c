"""Losses: their values, their range, and what they refuse."""

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
    """An answer that wants those calls made."""
    return Answer(
        "", tool_calls=tuple({"id": "x", "function": {"name": name, "arguments": said}} for name, said in calls)
    )


@pytest.mark.parametrize(("draft", "expert", "loss"), [(1, 1, 0), (0, 1, 1), (1, 0, 0), (0, 0, 0)])
def test_only_a_wrong_draft_of_a_right_expert_loses(draft: int, expert: int, loss: float) -> None:
    """With the truth known, the loss is the paper's."""
    assert correctness_loss(bool(draft), bool(expert)) == loss
    said = {0: "wrong", 1: "right"}
    assert AnswerLoss(str.__eq__, truth="right")(Answer(said[draft]), Answer(said[expert])) == loss


def test_without_the_truth_the_expert_stands_for_it() -> None:
    """A draft loses where its answer differs from the expert's, by the equality given."""
    loss = AnswerLoss(lambda one, other: float(one) == float(other))
    assert loss(Answer("42.0"), Answer("42")) == 0.0
    assert loss(Answer("41"), Answer("42")) == 1.0


def test_what_cannot_be_compared_is_not_known() -> None:
    """It is no loss of 0, and with the truth known it matters only where it decides."""

    def equal(one: str, other: str) -> bool | None:
        return None if "?" in one + other else one == other

    assert AnswerLoss(equal)(Answer("a?"), Answer("a")) is None
    with_truth = AnswerLoss(equal, truth="a")
    assert with_truth(Answer("?"), Answer("a")) is None
    assert with_truth(Answer("b"), Answer("?")) is None
    assert with_truth(Answer("a"), Answer("?")) == 0.0
    assert with_truth(Answer("?"), Answer("b")) == 0.0


@given(marks, marks, marks)
def test_mark_loss(draft: float, better: float, expert: float) -> None:
    """In [0, 1], 0 for a draft at least as good, and never larger for a better draft."""
    loss = mark_loss(draft, expert)
    assert 0.0 <= loss <= 1.0
    assert (loss == 0.0) is (draft >= expert)
    assert mark_loss(max(draft, better), expert) <= loss


def test_mark_loss_by_hand() -> None:
    """The root of the share of the nine marks between best and worst."""
    assert mark_loss(1, 10) == 1.0
    assert mark_loss(6, 10) == pytest.approx(2 / 3)
    assert mark_loss(4, 4.25) == pytest.approx(1 / 6)


@pytest.mark.parametrize("mark", [0.0, 11.0, math.nan, math.inf, -1.0])
def test_impossible_marks(mark: float) -> None:
    """A mark outside 1 to 10 makes no loss."""
    with pytest.raises(InputError, match="a mark must lie in"):
        mark_loss(mark, 5.0)
    with pytest.raises(InputError, match="a mark must lie in"):
        mark_loss(5.0, mark)


@given(vectors, vectors, st.floats(1e-3, 1e3))
def test_cosine_distance(one: list[float], other: list[float], scale: float) -> None:
    """In [0, 1], the same both ways, 0 for the same direction, whatever the lengths."""
    distance = cosine_distance(one, other)
    assert 0.0 <= distance <= 1.0
    assert distance == pytest.approx(cosine_distance(other, one))
    assert cosine_distance(one, [scale * part for part in one]) == pytest.approx(0.0, abs=1e-9)
    assert cosine_distance(one, [-part for part in one]) == 1.0


@pytest.mark.parametrize("vector", [[0.0, 0.0], [math.nan, 1.0], [math.inf, 1.0], [1.0], [[1.0, 0.0]], [1e200, 1e200]])
def test_embeddings_without_a_direction(vector: Any) -> None:
    """Zero, not finite, or of another shape: refused rather than turned into a number."""
    with pytest.raises(InputError, match="embedding"), np.errstate(over="ignore"):
        cosine_distance(vector, [1e200, 0.0])


def test_embedding_loss() -> None:
    """The texts are embedded by whatever function is given."""
    loss = EmbeddingLoss(lambda text: [float(text.count("a")), float(text.count("b"))])
    assert loss(Answer("aab"), Answer("aab")) == pytest.approx(0.0)
    assert loss(Answer("a"), Answer("b")) == 1.0


@given(st.dictionaries(st.text(max_size=3), values, max_size=3))
def test_the_same_arguments_written_otherwise(arguments: dict[str, Any]) -> None:
    """Order of keys, spacing and escapes do not count; nor whether they were parsed already."""
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
    """1 is 1.0 and neither true nor "1"; what is no JSON object is a loss, even if both write the same."""
    assert ToolCallLoss()(calling(("f", ours)), calling(("f", theirs))) == loss
    assert ToolCallLoss()(calling(("f", theirs)), calling(("f", ours))) == loss


def test_calls_are_compared_as_a_whole() -> None:
    """Names and number count; order does where it is said to."""
    one, two = ("f", '{"a": 1}'), ("g", "{}")
    assert ToolCallLoss()(calling(one, two), calling(two, one)) == 0.0
    assert ToolCallLoss(ordered=True)(calling(one, two), calling(two, one)) == 1.0
    assert ToolCallLoss(ordered=True)(calling(one, two), calling(one, two)) == 0.0
    assert ToolCallLoss()(calling(one), calling(one, one)) == 1.0
    assert ToolCallLoss()(calling(one), calling(("h", '{"a": 1}'))) == 1.0
    assert ToolCallLoss()(calling(one), Answer("a")) == 1.0


@pytest.mark.parametrize("call", [{}, {"function": None}, {"function": {"arguments": "{}"}}, {"function": {"name": 1}}])
def test_a_call_that_cannot_be_read_is_a_loss(call: dict[str, Any]) -> None:
    """On either side, even if both are the same."""
    broken = Answer("", tool_calls=(call,))
    assert ToolCallLoss()(broken, broken) == 1.0


def test_answers_without_calls() -> None:
    """They agree, unless a loss of their texts is given."""
    assert ToolCallLoss()(Answer("a"), Answer("b")) == 0.0
    with_text = ToolCallLoss(text=AnswerLoss(str.__eq__))
    assert with_text(Answer("a"), Answer("b")) == 1.0
    assert with_text(calling(("f", "{}")), calling(("f", "{}"))) == 0.0


def test_loss_by_task() -> None:
    """Each kind of task has its loss; a kind without one is an error, or what else is set."""
    by_task = ByTask({"tools": ToolCallLoss(), "text": AnswerLoss(str.__eq__)})
    assert by_task.of("tools")(Answer("a"), Answer("b")) == 0.0
    assert by_task.of("text")(Answer("a"), Answer("b")) == 1.0
    with pytest.raises(InputError, match="no loss for task 'maths': there are text, tools"):
        by_task.of("maths")
    assert ByTask({}, otherwise=ToolCallLoss()).of("maths") == ToolCallLoss()
    with pytest.raises(SettingsError, match="at least one task"):
        ByTask()
