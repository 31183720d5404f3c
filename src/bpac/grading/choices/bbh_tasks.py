"""BIG-Bench Hard: the kind of answer that each of its 27 tasks expects, and the grader for it."""

import re
from collections.abc import Mapping
from enum import StrEnum

from bpac.errors import InputError
from bpac.grading.choices.options import grade_option, listed_options, named_options
from bpac.grading.choices.words import PLAUSIBLE, TRUE_FALSE, VALID, YES_NO, grade_brackets, grade_word, grade_word_list
from bpac.grading.mathematics.equivalence import grade_mathematics
from bpac.grading.text.answer_text import AnswerText, Verdict, normalized_words, too_long


class AnswerKind(StrEnum):
    """The form of an answer; the prompt names it to the model."""

    OPTION = "the letter of an option"
    YES_NO = "yes or no"
    PLAUSIBLE = "yes or no, or plausible or implausible"
    TRUE_FALSE = "True or False"
    VALID = "valid or invalid"
    NUMBER = "a number"
    WORDS = "words in order"
    BRACKETS = "closing brackets"


TASKS: Mapping[str, AnswerKind] = {
    "boolean_expressions": AnswerKind.TRUE_FALSE,
    "causal_judgement": AnswerKind.YES_NO,
    "date_understanding": AnswerKind.OPTION,
    "disambiguation_qa": AnswerKind.OPTION,
    "dyck_languages": AnswerKind.BRACKETS,
    "formal_fallacies": AnswerKind.VALID,
    "geometric_shapes": AnswerKind.OPTION,
    "hyperbaton": AnswerKind.OPTION,
    "logical_deduction_five_objects": AnswerKind.OPTION,
    "logical_deduction_seven_objects": AnswerKind.OPTION,
    "logical_deduction_three_objects": AnswerKind.OPTION,
    "movie_recommendation": AnswerKind.OPTION,
    "multistep_arithmetic_two": AnswerKind.NUMBER,
    "navigate": AnswerKind.YES_NO,
    "object_counting": AnswerKind.NUMBER,
    "penguins_in_a_table": AnswerKind.OPTION,
    "reasoning_about_colored_objects": AnswerKind.OPTION,
    "ruin_names": AnswerKind.OPTION,
    "salient_translation_error_detection": AnswerKind.OPTION,
    "snarks": AnswerKind.OPTION,
    "sports_understanding": AnswerKind.PLAUSIBLE,
    "temporal_sequences": AnswerKind.OPTION,
    "tracking_shuffled_objects_five_objects": AnswerKind.OPTION,
    "tracking_shuffled_objects_seven_objects": AnswerKind.OPTION,
    "tracking_shuffled_objects_three_objects": AnswerKind.OPTION,
    "web_of_lies": AnswerKind.YES_NO,
    "word_sorting": AnswerKind.WORDS,
}

_CLOSED = {
    AnswerKind.YES_NO: YES_NO,
    AnswerKind.PLAUSIBLE: PLAUSIBLE,
    AnswerKind.TRUE_FALSE: TRUE_FALSE,
    AnswerKind.VALID: VALID,
}
_LETTER = re.compile(r"\(?([A-Z])\)?")


def kind_of(task: str) -> AnswerKind:
    """The kind of answer that a task expects.

    >>> kind_of("word_sorting")
    <AnswerKind.WORDS: 'words in order'>
    """
    if task not in TASKS:
        raise InputError(f"BBH has no task {task!r}; it has {', '.join(TASKS)}")
    return TASKS[task]


def grade_bbh(task: str, reference: str, text: str, prompt: str, finished: bool = True) -> Verdict:
    r"""Grade an answer to a question of BIG-Bench Hard.

    Parameters
    ----------
    task: the name of the task.
    reference: the correct answer, as in the data set.
    text: the model's answer, with or without its reasoning.
    prompt: the question, with its options.
    finished: whether the model stopped by itself; false if it was cut off.

    >>> grade_bbh("snarks", "(B)", "The answer is B.", "Which?\nOptions:\n(A) this\n(B) that")
    True
    """
    kind = kind_of(task)
    if kind is AnswerKind.OPTION:
        letter = _LETTER.fullmatch(reference.strip())
        options = listed_options(prompt)
        return (
            grade_option(letter[1], text, options, finished)
            if letter
            else _grade_split_options(reference, text, options, finished)
        )
    if kind is AnswerKind.NUMBER:
        return grade_mathematics(reference, text, finished)
    if kind is AnswerKind.WORDS:
        return grade_word_list(reference, text, finished)
    if kind is AnswerKind.BRACKETS:
        return grade_brackets(reference, text, prompt, finished)
    return grade_word(reference, text, _CLOSED[kind], finished)


def _grade_split_options(reference: str, text: str, options: tuple[str, ...], finished: bool) -> Verdict:
    """Grade by text: in three questions the options were split at commas, so no letter stands for the right answer."""
    if too_long(text):
        return None
    answer = AnswerText.read(text, finished)
    for candidate in (*answer.marked(), *answer.lines()[-1:]):
        if normalized_words(candidate) == normalized_words(reference):
            return True
        return None if named_options(candidate, options) else False
    return answer.without_answer()
