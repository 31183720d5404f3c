"""Multiple choice: the option that an answer names by its letter or by its text."""

import re
import string
from collections.abc import Sequence

from bpac.grading.text.answer_text import AnswerText, Verdict, normalized_words, too_long, without_markdown

_TEXT = re.compile(r"\\(?:text|textbf|mathrm|mathbf|mbox)\s*\{([^{}]*)\}")
_CALLED = r"(?:the\s+)?(?:correct\s+|best\s+|right\s+)?(?:answer|option|choice)\s*:?\s*"
_ALONE = re.compile(rf"[\"'“]?(?:{_CALLED})?[(\[{{]?\s*([A-Z])\s*[)\]}}]?[.:,;]?[\"'”]?", re.IGNORECASE)
# A letter before more words is a label only with punctuation or a word such as "because": "A dog" is not option A.
_LABEL = re.compile(
    rf"(?:{_CALLED})?(?:[(\[{{]\s*([A-Z])\s*[)\]}}]|([A-Z])(?=[.):,;]|\s*[-–—]\s|\s+(?:because|since|as|which|based|due|given|is)\b))"
)
_LINE = re.compile(r"^[ \t]*\(([A-Z])\)\s?(.*)$", re.MULTILINE)


def listed_options(prompt: str) -> tuple[str, ...]:
    r"""The options that a question lists as "(A) …", one per line, in order.

    >>> listed_options("Which?\nOptions:\n(A) this\n(B) that")
    ('this', 'that')
    """
    found = _LINE.findall(prompt.rpartition("Options:")[2])
    return tuple(
        text.strip() for (letter, text), due in zip(found, string.ascii_uppercase, strict=False) if letter == due
    )


def named_options(answer: str, options: Sequence[str]) -> frozenset[str]:
    r"""The letters that an answer can mean: several if options have the same text, none if it names no option.

    Parameters
    ----------
    answer: the answer.
    options: the text of every option, beginning with A.

    >>> answers = ("(B)", r"\text{B}", "B. dog", "Dog.", "A dog", "C")
    >>> [sorted(named_options(answer, ["cat", "dog"])) for answer in answers]
    [['B'], ['B'], ['B'], ['B'], [], []]
    """
    letters = string.ascii_uppercase[: len(options)]
    answer = _exact(answer)
    if (alone := _ALONE.fullmatch(answer)) and alone[1].upper() in letters:
        return frozenset(alone[1].upper())
    # The exact text comes first because some options, such as genotypes, differ only in case.
    for normalize in (_exact, normalized_words):
        given = normalize(answer)
        same = (letter for letter, text in zip(letters, options, strict=True) if normalize(text) == given)
        if given and (found := frozenset(same)):
            return found
    if (label := _LABEL.match(answer.lstrip("\"'“"))) and (letter := label[1] or label[2]) in letters:
        return frozenset(letter)
    return frozenset()


def grade_option(reference: str, text: str, options: Sequence[str], finished: bool = True) -> Verdict:
    """Grade which option a model chose; ``None`` also if its words fit both the correct option and another one.

    Parameters
    ----------
    reference: the letter of the correct option.
    text: the model's answer, with or without its reasoning.
    options: the text of every option, beginning with A.
    finished: whether the model stopped by itself; false if it was cut off.

    >>> grade_option("B", "It barks. The answer is (B).", ["cat", "dog"])
    True
    >>> grade_option("B", "It purrs, so: cat", ["cat", "dog"]), grade_option("B", "dog", ["cat", "dog"])
    (False, True)
    """
    if too_long(text):
        return None
    answer = AnswerText.read(text, finished)
    lines = answer.lines()
    # Without a marked answer, the option may be the whole text, its last line or its first line.
    for candidate in (*answer.marked(), " ".join(lines), *lines[-1:], *lines[:1]):
        if named := named_options(candidate, options):
            if reference not in named:
                return False
            texts = {_exact(options[string.ascii_uppercase.index(letter)]) for letter in named}
            return True if len(texts) == 1 else None
    return answer.without_answer()


def _exact(text: str) -> str:
    return " ".join(_TEXT.sub(r"\1", without_markdown(text)).replace("$", "").split()).rstrip(".")
