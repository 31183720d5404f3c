"""One long answer must not block grading: the work grows with the length of a text, not with its square.

Every function that parses text from models, judges and callers gets texts of 1 kB and 100 kB that provoke backtracking
in patterns. Processor times are compared with each other, so the speed of the machine does not matter: a text that is
100 times as long takes about 100 times as long if the work is linear, and 10,000 times if it is quadratic.
"""

import contextlib
import time
from collections.abc import Callable

import pytest

from bpac.answer import split_reasoning
from bpac.errors import AnswerError
from bpac.grading.choices.bbh_tasks import grade_bbh
from bpac.grading.choices.options import grade_option, listed_options
from bpac.grading.choices.words import YES_NO, grade_brackets, grade_word, grade_word_list
from bpac.grading.equality import same_final, same_text
from bpac.grading.judge import parse_mark
from bpac.grading.mathematics.equivalence import grade_mathematics
from bpac.grading.mathematics.exact_equivalence import same_result
from bpac.grading.mathematics.notation import number_base, readings, spelled_out
from bpac.grading.text.boxes import boxes
from bpac.scores import same_words, stated_confidence, without_confidence
from bpac.wire.rendering import chunks

SHORT, LONG = 1_000, 100_000
# Above linear, with a margin for caches and a busy machine, and far below quadratic.
MOST_GROWTH = 12 * LONG / SHORT
# Shorter times are too short to be measured and count as this many seconds.
LEAST = 5e-5

READERS: dict[str, Callable[[str], object]] = {
    "same_final": lambda text: same_final(text, "The answer is 4."),
    "same_final of two": lambda text: same_final(text, f"{text}."),
    "same_text": lambda text: same_text(text, f"{text}."),
    "same_result": lambda text: same_result(text, "The answer is 4."),
    "same words": lambda text: same_words(text, f"{text}."),
    "boxes": boxes,
    "mathematics": lambda text: grade_mathematics("St. Louis", text),
    "notation": lambda text: (spelled_out(text), number_base(text), readings(text)),
    "options": lambda text: grade_option("B", text, ("cat", "dog", "cow")),
    "listed options": listed_options,
    "yes or no": lambda text: grade_word("yes", text, YES_NO),
    "words in order": lambda text: grade_word_list("ant bee cow", text),
    "brackets": lambda text: grade_brackets("} ]", text, "Input: [ {"),
    "split options": lambda text: grade_bbh("ruin_names", "rita, sue and bob poo", text, "Options:\n(A) a\n(B) b"),
    "judge": parse_mark,
    "confidence": stated_confidence,
    "without confidence": without_confidence,
    "reasoning": split_reasoning,
    "chunks": lambda text: list(chunks({"choices": [{"message": {"content": text}}]}, include_usage=False)),
}


def repeated(part: str, before: str = "", after: str = "") -> Callable[[int], str]:
    """Makes texts of a given length that repeat a part."""
    return lambda length: (before + part * (length // len(part)) + after)[-length:]


TEXTS: dict[str, Callable[[int], str]] = {
    name: repeated(*parts)
    for name, parts in {
        "spaces": (" ", "", "x"), "spaces between boxes": (" ", "\\boxed{1}", "x\\boxed{2}"), "lines": ("\n", "", "x"),
        "spaced lines": (" \n", "", "x"), "tabs": ("\t", "- ", "x"), "open boxes": ("\\boxed{",),
        "boxes": ("\\boxed{1} ",),
        "boxes in boxes": ("\\boxed{1}", "\\boxed{", "}"), "boxes without braces": ("\\boxed ",),
        "open text": ("\\text{",),
        "nested fractions": ("\\frac{", "\\boxed{", "}"), "short fractions": ("\\frac1",),
        "dfractions": ("\\dfrac1{2}",),
        "braces": ("{",), "closing braces": ("}",), "closed braces": ("{}",), "escapes": ("\\",), "dollars": ("$", "",
        "x"),
        "a thought": (" ", "", "think>"), "thoughts": ("<think>",), "ends of thoughts": ("</think>",),
        "answers": ("answer:",), "stated answers": ("The answer is 4. ",), "answers on lines": ("Answer: 4\n",),
        "answers after commas": ("so, the answer is 4, ",), "answers in spaces": (" ", "answer", "is 4"),
        "choices": ("I would go with C. ",), "options": ("(A) ",), "letters": ("A. ",), "lists": ("the list is ",),
        "lists with colons": ("list: ",), "words": ("words ", "", ":"), "hashes": ("#### 1\n",), "headings": ("#",),
        "yes": ("yes ",), "negations": ("not yes ",), "stars": ("*",), "bold": ("**a** ",), "half bold": ("**a ",),
        "fences": ("```\n",), "fences with words": ("```json\na\n",), "bullets": ("- ",), "numbered": ("1. ",),
        "quotes": ('"',), "typographic quotes": ("“",), "full stops": (". ",), "sentences": ("A b. ",),
        "digits": ("1",),
        "numbers": ("1,000 ",), "zeros": ("0.0",), "roots": ("√(",), "spaced roots": (" ", "√", "x"),
        "and": (" and ",),
        "or in braces": (" or ", "{", "}"), "powers": ("2^",), "factorials": ("!", "3"), "units": ("1 km ",),
        "degrees": ("^\\circ",),
        "sines": ("\\sin ",), "commas": (", ",), "score": (" ", "score", "7"), "scores": ("score: ",),
        "marks": ("7/10 ",),
        "out of": (" ", "7", "out of 10"), "confidence": ("confidence ",), "confidence and spaces": (" ",
        "confidence is", "x"),
        "confident numbers": ("1", "confidence: ", "x"), "percent": ("%",), "json": ('{"a":',), "arrays": ("[",),
        "explanations": ("\n\nExplanation: ",), "introductions": ("here is ", "", ":\n"),
        "goodbyes": ("I hope this helps! ",),
        "accents": ("e\u0301",), "capitals": ("ß",), "chinese": ("答案是",), "environments": ("\\begin{a}",),
        "halves": ("½",),
    }.items()
}  # fmt: skip


def seconds(read: Callable[[str], object], text: str, times: int) -> float:
    """The smallest of several measured processor times of parsing a text."""
    least = float("inf")
    for _ in range(times):
        started = time.thread_time()
        with contextlib.suppress(AnswerError, ValueError):
            read(text)
        least = min(least, time.thread_time() - started)
    return least


def growth(read: Callable[[str], object], text: Callable[[int], str]) -> float:
    """How many times as long a text that is 100 times as long takes."""
    short = max(LEAST, seconds(read, text(SHORT), 3))
    grown = seconds(read, text(LONG), 1) / short
    # Measured again before it counts as too much: another process may have disturbed the measurement.
    return grown if grown < MOST_GROWTH else min(grown, seconds(read, text(LONG), 2) / short)


@pytest.mark.parametrize("reader", READERS)
def test_the_work_grows_linearly_with_the_length(reader: str) -> None:
    """A text that is 100 times as long takes far less than 10,000 times as long, whatever it consists of."""
    grown = {name: growth(READERS[reader], text) for name, text in TEXTS.items()}
    assert {name: value for name, value in grown.items() if value >= MOST_GROWTH} == {}


def test_quadratic_work_is_noticed() -> None:
    """The measurement separates quadratic from linear work: a negative control."""

    def quadratic(text: str) -> int:
        return sum(text.count("a", 0, end) for end in range(0, len(text), 10))

    assert growth(quadratic, repeated("a")) > MOST_GROWTH
    assert (
        growth(lambda text: sum(text.count("a", at, at + 10) for at in range(0, len(text), 10)), repeated("a"))
        < MOST_GROWTH
    )
