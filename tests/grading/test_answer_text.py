"""Finding the marked answer in a model's text."""

import pytest

from bpac.grading.text.answer_text import AnswerText, first_sentence
from bpac.grading.text.boxes import boxes


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("So $\\boxed{\\frac{a^{2}}{\\sqrt{b}}}$ it is.", "\\frac{a^{2}}{\\sqrt{b}}"),
        ("$\\boxed{1}$, no, $\\boxed{2}$", "2"),
        ("\\boxed{\\{1, 2\\}}", "\\{1, 2\\}"),
        ("$\\boxed 7$", "7"),
        ("\\fbox{12}", "12"),
        ("The answer is 5, so \\boxed{6}", "6"),
        ("5 + 6 = 11\n#### 11", "11"),
        ("The final answer is: 12", "12"),
        ("**Answer:** 12", "12"),
        ("**Final Answer**: **12**", "12"),
        ("Answer:\n\n12", "12"),
        ("The correct option is (C)", "(C)"),
        ("the answer is 3\nWait. The answer is 4", "4"),
        ("ANSWER = yes", "yes"),
    ],
)
def test_the_marked_answer_is_found(text: str, answer: str) -> None:
    """Boxes, ``####`` and "the answer is" are found, and the last of the most reliable marks counts."""
    assert AnswerText.read(text).marked()[0] == answer


def test_boxes_joined_by_and_or_or_are_one_answer() -> None:
    """Boxes joined by "and", "or" or a comma are one answer; others are not."""
    assert boxes("$\\boxed{2}$ and $\\boxed{3}$") == ["2, 3"]
    assert boxes("$\\boxed{2} \\text{ or } \\boxed{3}$") == ["2, 3"]
    assert boxes("first $\\boxed{2}$, then we see $\\boxed{3}$") == ["2", "3"]


def test_an_unfinished_line_or_box_is_not_an_answer() -> None:
    """The box or line on which a model was cut off is not used as its answer."""
    assert boxes("so \\boxed{12") == []
    assert AnswerText.read("The answer is 12", finished=False).marked() == ()
    assert AnswerText.read("The answer is 12\nbecause", finished=False).marked() == ("12",)
    assert AnswerText.read("\\boxed{12} and", finished=False).marked() == ("12",)


def test_reasoning_is_not_an_answer() -> None:
    """An answer marked in the reasoning is not the model's answer."""
    answer = AnswerText.read("<think>The answer is 3.</think>The answer is 4")
    assert answer.marked() == ("4",)
    assert AnswerText.read("thought without a beginning \\boxed{3}</think>4").marked() == ()


def test_a_missing_answer_is_wrong_only_if_the_model_finished() -> None:
    """A model that finishes without an answer is wrong; one that was cut off, also in its reasoning, is ungraded."""
    assert AnswerText.read("I do not know.").without_answer() is False
    assert AnswerText.read("").without_answer() is False
    assert AnswerText.read("We begin", finished=False).without_answer() is None
    assert AnswerText.read("<think>We begin").without_answer() is None


def test_a_list_of_options_and_talk_about_answers_are_not_marked_answers() -> None:
    """A list headed "Options:" and the words "the answers differ" do not mark an answer."""
    assert AnswerText.read("Options:\n(A) one\nThe answers differ.").marked() == ()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [("3.5 cm. It follows.", "3.5 cm"), ("$x=2$.", "$x=2$"), ("12", "12"), ("0.5.", "0.5"), ("1. e4 e5", "1. e4 e5")],
)
def test_a_decimal_point_does_not_end_a_sentence(text: str, sentence: str) -> None:
    """A sentence ends at a full stop before a new sentence or at the end of the text."""
    assert first_sentence(text) == sentence
