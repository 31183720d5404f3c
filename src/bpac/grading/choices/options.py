"""Multiple choice: which option an answer names, by its letter or by its text."""

import re
import string
from collections.abc import Sequence

from bpac.grading.text.reply import AnswerText, Verdict, plain, too_long, unmarked

_TEXT = re.compile(r"\\(?:text|textbf|mathrm|mathbf|mbox)\s*\{([^{}]*)\}")
_CALLED = r"(?:the\s+)?(?:correct\s+|best\s+|right\s+)?(?:answer|option|choice)\s*:?\s*"
_ALONE = re.compile(rf"[\"'“]?(?:{_CALLED})?[(\[{{]?\s*([A-Z])\s*[)\]}}]?[.:,;]?[\"'”]?", re.IGNORECASE)
# A letter before more words is a label only with a sign that it is one: "A dog" is a dog, and "I and II" no option I.
_LABEL = re.compile(
    rf"(?:{_CALLED})?(?:[(\[{{]\s*([A-Z])\s*[)\]}}]|([A-Z])(?=[.):,;]|\s*[-–—]\s|\s+(?:because|since|as|which|based|due|given|is)\b))"
)
_LINE = re.compile(r"^[ \t]*\(([A-Z])\)\s?(.*)$", re.MULTILINE)


def listed_options(prompt: str) -> tuple[str, ...]:
    r"""The options a question lists as "(A) …", one a line, in order.

    >>> listed_options("Which?\nOptions:\n(A) this\n(B) that")
    ('this', 'that')
    """
    found = _LINE.findall(prompt.rpartition("Options:")[2])
    return tuple(
        text.strip() for (letter, text), due in zip(found, string.ascii_uppercase, strict=False) if letter == due
    )


def named_options(said: str, options: Sequence[str]) -> frozenset[str]:
    r"""The letters an answer can mean: one, several if options read alike, none if it names no option.

    Parameters
    ----------
    said: the answer.
    options: the text of every option, from A on.

    >>> [sorted(named_options(said, ["cat", "dog"])) for said in ("(B)", r"\text{B}", "B. dog", "Dog.", "A dog", "C")]
    [['B'], ['B'], ['B'], ['B'], [], []]
    """
    letters = string.ascii_uppercase[: len(options)]
    said = _exact(said)
    if (alone := _ALONE.fullmatch(said)) and alone[1].upper() in letters:
        return frozenset(alone[1].upper())
    # Genotypes differ in nothing but their case, so the exact text goes first.
    for reading in (_exact, plain):
        if texts := frozenset(
            letter for letter, text in zip(letters, options, strict=True) if reading(text) == reading(said) != ""
        ):
            return texts
    if (label := _LABEL.match(said.lstrip("\"'“"))) and (letter := label[1] or label[2]) in letters:
        return frozenset(letter)
    return frozenset()


def grade_option(reference: str, text: str, options: Sequence[str], finished: bool = True) -> Verdict:
    """Grade which option a model chose; ``None`` also when its words fit the right option and another alike.

    Parameters
    ----------
    reference: the letter of the right option.
    text: what the model said, with or without its reasoning.
    options: the text of every option, from A on.
    finished: whether it came to an end by itself.

    >>> grade_option("B", "It barks. The answer is (B).", ["cat", "dog"])
    True
    >>> grade_option("B", "It purrs, so: cat", ["cat", "dog"]), grade_option("B", "dog", ["cat", "dog"])
    (False, True)
    """
    if too_long(text):
        return None
    reply = AnswerText.read(text, finished)
    lines = reply.lines()
    # Without a marked answer it may be the whole reply, its end or its beginning.
    for said in (*reply.marked(), " ".join(lines), *lines[-1:], *lines[:1]):
        if named := named_options(said, options):
            right = options[string.ascii_uppercase.index(reference)]
            same = {
                letter for letter in named if _exact(options[string.ascii_uppercase.index(letter)]) == _exact(right)
            }
            return None if reference in named and same != named else reference in named
    return reply.without_answer()


def _exact(text: str) -> str:
    return " ".join(_TEXT.sub(r"\1", unmarked(text)).replace("$", "").split()).rstrip(".")
