"""Grading of options, single words, lists of words and brackets."""

import pytest

from bpac.errors import InputError
from bpac.grading.choices.bbh_tasks import TASKS, grade_bbh, kind_of
from bpac.grading.choices.options import grade_option
from bpac.grading.choices.words import PLAUSIBLE, TRUE_FALSE, VALID, YES_NO, grade_brackets, grade_word, grade_word_list
from bpac.grading.text.answer_text import Verdict

ANIMALS = ("cat", "a good dog", "I and II only", "cow", "Bb Bb", "Bb BB", "hen", "cow", "pig", "A fox")


@pytest.mark.parametrize(
    ("reference", "text", "verdict"),
    [
        ("B", "B", True), ("B", "(b)", True), ("B", "The answer is B because it barks.", True), ("B", "Option B", True),
        ("B", "A good dog", True), ("A", "A good dog", False), ("C", "I and II only", True),
        ("I", "I and II only", False),
        ("B", "The answer is not (A). The answer is (B).", True), ("E", "Bb Bb", True), ("F", "Bb Bb", False),
        ("E", "bb bb", None), ("D", "cow", True), ("H", "cow", True), ("A", "cow", False), ("J", "(J)", True),
        ("J", "\\boxed{J}", True), ("J", "I choose K", False), ("A", "\\boxed{12}. So the answer is (A).", True),
        ("A", "B\n\nDogs bark.", False), ("A", "It is hard to say.", False), ("A", "<think>The answer is (A)", None),
    ],
)  # fmt: skip
def test_an_option_is_named_by_its_letter_or_text(reference: str, text: str, verdict: Verdict) -> None:
    """Articles and Roman numerals do not name an option, and words that fit two options are unknown."""
    assert grade_option(reference, text, ANIMALS) is verdict


@pytest.mark.parametrize(
    ("reference", "text", "words", "verdict"),
    [
        ("Yes", "yes.", YES_NO, True), ("No", "**No**, it does not.", YES_NO, True),
        ("No", "Yes and no.", YES_NO, False),
        ("no", "It is not plausible.", PLAUSIBLE, True), ("yes", "Implausible", PLAUSIBLE, False),
        ("True", "The answer is \\boxed{\\text{True}}", TRUE_FALSE, True), ("False", "True", TRUE_FALSE, False),
        ("invalid", "The argument is not deductively valid.", VALID, True), ("valid", "invalid", VALID, False),
        ("Yes", "Perhaps.", YES_NO, False), ("Yes", "Let me", YES_NO, False),
    ],
)  # fmt: skip
def test_the_first_or_only_word_counts(reference: str, text: str, words: dict[str, str], verdict: Verdict) -> None:
    """The first word or the only word counts, and "not" reverses its meaning."""
    assert grade_word(reference, text, words) is verdict


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("ant bee cow", True), ("Ant, bee, cow.", True), ("1. ant\n2. bee\n3. cow", True),
        ("\\boxed{ant, bee, cow}", True),
        ("The sorted list is:\n\n- ant\n- bee\n- cow\n\nI hope this helps!", True), ("bee ant cow", False),
        ("ant bee", False), ("ant bee cow dog", False), ("", False), ("<think>ant bee cow", None),
    ],
)  # fmt: skip
def test_a_list_needs_exactly_the_words_in_order(text: str, verdict: Verdict) -> None:
    """All words in their order, in any format, and no others."""
    assert grade_word_list("ant bee cow", text) is verdict


@pytest.mark.parametrize(
    ("text", "verdict"),
    [("} ]", True), ("}]", True), ("\\boxed{\\} ]}", True), ("\\boxed{} ]}", True), ("[ { ( ) } ]", True),
     ("The answer is: `} ]`", True), ("] }", False), ("} ] ]", False), ("No idea", False), ("<think>} ]", None)],
)  # fmt: skip
def test_brackets_are_graded_alone_or_with_their_sequence(text: str, verdict: Verdict) -> None:
    """The closing brackets alone or the whole sequence are correct; spaces and escapes do not matter."""
    assert grade_brackets("} ]", text, "Complete the sequence. Input: [ { ( )") is verdict


def test_every_task_has_a_kind_of_answer() -> None:
    """There are 27 tasks, and the error for an unknown task lists them."""
    assert len(TASKS) == 27
    assert all(kind_of(task) for task in TASKS)
    with pytest.raises(InputError, match=r"no task 'chess'; it has boolean_expressions"):
        grade_bbh("chess", "yes", "yes", "")
