"""Where the final answer stands in what a model said."""

import pytest

from bpac.grading.text.boxes import boxes
from bpac.grading.text.reply import AnswerText, first_sentence


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
    """Boxes, hashes and "the answer is" are found, and the last of the strongest mark counts."""
    assert AnswerText.read(text).marked()[0] == answer


def test_neighbouring_boxes_are_one_answer() -> None:
    """Boxes joined by "and", "or" or a comma belong together; others do not."""
    assert boxes("$\\boxed{2}$ and $\\boxed{3}$") == ["2, 3"]
    assert boxes("$\\boxed{2} \\text{ or } \\boxed{3}$") == ["2, 3"]
    assert boxes("first $\\boxed{2}$, then we see $\\boxed{3}$") == ["2", "3"]


def test_a_box_that_never_closes_is_no_answer() -> None:
    """What a model was writing when it was cut off is not taken for its answer."""
    assert boxes("so \\boxed{12") == []
    assert AnswerText.read("The answer is 12", finished=False).marked() == ()
    assert AnswerText.read("The answer is 12\nbecause", finished=False).marked() == ("12",)
    assert AnswerText.read("\\boxed{12} and", finished=False).marked() == ("12",)


def test_reasoning_is_no_answer() -> None:
    """Whatever a model thinks before it answers is not its answer."""
    reply = AnswerText.read("<think>The answer is 3.</think>The answer is 4")
    assert reply.marked() == ("4",)
    assert AnswerText.read("thought without a beginning \\boxed{3}</think>4").marked() == ()


def test_no_answer_is_wrong_only_from_a_model_that_finished() -> None:
    """A model that ends without an answer is wrong; one that was cut off, in its text or in its thought, is unknown."""
    assert AnswerText.read("I do not know.").without_answer() is False
    assert AnswerText.read("").without_answer() is False
    assert AnswerText.read("We begin", finished=False).without_answer() is None
    assert AnswerText.read("<think>We begin").without_answer() is None


def test_words_that_only_look_like_marks() -> None:
    """A list headed "Options:" and an answer that is spoken about are not marked answers."""
    assert AnswerText.read("Options:\n(A) one\nThe answers differ.").marked() == ()


@pytest.mark.parametrize(
    ("said", "sentence"),
    [("3.5 cm. It follows.", "3.5 cm"), ("$x=2$.", "$x=2$"), ("12", "12"), ("0.5.", "0.5"), ("1. e4 e5", "1. e4 e5")],
)
def test_sentences_end_at_full_stops(said: str, sentence: str) -> None:
    """A full stop before a new sentence or at the end is an end; a decimal point is not."""
    assert first_sentence(said) == sentence
