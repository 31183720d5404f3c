r"""Whether two texts have exactly the same mathematical result; the verdict on an ambiguous formula is unknown.

This is stricter than ``same_mathematics``, which compares with a reference that is known to be correct and accepts a
missing unit or a rounded number. Here neither answer is known to be correct, and a wrong "equal" would be served.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from bpac.grading.equality import FORMULA, final_answers_to_compare, same_answer
from bpac.grading.mathematics.equivalence import LONGEST, SECONDS, ask_algebra
from bpac.grading.mathematics.notation import spelled_out
from bpac.grading.mathematics.worker_processes import WorkerProcesses
from bpac.grading.text.answer_text import Verdict

# Answers with more formulas than this are not compared.
MOST_PARTS = 8

_NAME = re.compile(r"([a-zA-Z])\s?=\s?(?=[^=]*\Z)")
_COMMAND = re.compile(r"\\(?:frac|sqrt|pi|cdot|times)(?![a-zA-Z])")
_SYMBOL = re.compile(r"[\d\sa-zA-Z+*/^(){}@.-]*")
_DECIMAL = re.compile(r"(?<![\d.])(\d+)\.(\d+)(?![\d.])")
# People and parsers disagree about the meaning of each of these: words and units, e and i, 3½ (@ is a fraction), 2^10,
# x2, f(x), 2(3), 1 2, more than one sign, and numbers that begin with 0.
_AMBIGUOUS = re.compile(
    r"[a-zA-Z]{2}|[eEiIdO]|\d\s*@|\^\s*[^{\s]\s*\w|[a-zA-Z}]\s*\d|\d\s+\d|[a-zA-Z]\s*\(|\d\s*\(\s*\d|\)\s*\d"
    r"|[-+*/^]\s*[-+*/^]|(?<![\d.])0\d|\.(?!\d)|(?<!\d)\.|[-+*/^]\s*\Z"
)
_READ_AS = {r"\frac": "@", r"\sqrt": "", r"\pi": "p", r"\cdot": "*", r"\times": "*"}
_WORD = re.compile(r"(?<![\\a-zA-Z])[a-zA-Z]{2}")
_WRITTEN = re.compile(r"[\w\s+*/^(){}\[\],.=!√π²³−·×÷\\-]*")
_CODE = re.compile(r"[\"\n`]")
_RANGE = re.compile(r"[\d\s.]+-[\d\s.-]+")
_DECIMAL_COMMA = re.compile(r"\d,\d")
_FRACTION_LINE = re.compile(r"-?\s?\d+\s?/\s?\d+")


def same_result(draft: str, expert: str, seconds: float = SECONDS, processes: WorkerProcesses | None = None) -> Verdict:
    r"""Whether two texts have the same result, as text or as formulas.

    Parameters
    ----------
    draft, expert: the texts.
    seconds: time limit of a comparison of formulas.
    processes: the worker processes that compare formulas (default: those of ``equivalence``).

    >>> same_result(r"So $x = \boxed{\frac{2}{4}}$.", "The answer is 0.5."), same_result("7", "8")
    (True, False)
    >>> same_result("20%", "0.2") is None
    True
    """
    finals = final_answers_to_compare(draft, expert)
    if isinstance(finals, bool) or finals is None:
        return finals
    verdict = same_answer(*finals)
    if verdict or max(map(len, finals)) > LONGEST or any(map(_CODE.search, finals)):
        return verdict
    one, other = map(_parts, finals)
    if one is None or other is None:
        # Formulas that cannot be parsed may be equal; words and plain numbers were compared above.
        return None if any(map(FORMULA.search, finals)) else verdict
    pairs = list(zip(one.formulas, other.formulas, strict=False))
    named = bool(one.name and other.name) and one.name != other.name
    if named or one.brackets != other.brackets or not len(one.formulas) == len(other.formulas) <= MOST_PARTS:
        return None
    return _same_formulas(pairs, seconds, processes)


def _same_formulas(pairs: Sequence[tuple[str, str]], seconds: float, processes: WorkerProcesses | None) -> Verdict:
    for pair in pairs:
        if not (same := ask_algebra("exact", *pair, seconds, processes)):
            # Several formulas may be the same in another order.
            return same if len(pairs) == 1 else None
    return True


class _Parts(NamedTuple):
    """The variable that an answer names, the brackets around its formulas, and the formulas."""

    name: str
    brackets: str
    formulas: list[str]


def _parts(answer: str) -> _Parts | None:
    """The parts of an answer; ``None`` if it contains anything but formulas."""
    # "about 5", "$5" and "~5" are not 5, although a lenient grader accepts them.
    if _WORD.search(answer) or not _WRITTEN.fullmatch(answer):
        return None
    text = spelled_out(answer)
    name = _NAME.match(text)
    text = text[name.end() :] if name else text
    brackets = text[:1] + text[-1:] if "," in text and text[:1] + text[-1:] in ("()", "[]") else ""
    inside = text[1:-1] if brackets else text
    if not brackets and _DECIMAL_COMMA.search(text):
        return None  # 1,2 is one number in some countries and two numbers in others
    formulas = [_formula(part.strip()) for part in inside.split(",")]
    known = [formula for formula in formulas if formula]
    return _Parts(name[1] if name else "", brackets, known) if len(known) == len(formulas) else None


def _formula(text: str) -> str | None:
    read = _COMMAND.sub(lambda command: _READ_AS[command[0]], text)
    if not read.strip() or not _SYMBOL.fullmatch(read) or _AMBIGUOUS.search(read):
        return None
    if _RANGE.fullmatch(text):
        return None  # 5-10 may be a range, and 2024-05-07 a date
    if "/" in text and not _FRACTION_LINE.fullmatch(text):
        return None
    # As a fraction, a decimal is not rounded.
    return _DECIMAL.sub(lambda found: rf"\frac{{{int(found[1] + found[2])}}}{{{10 ** len(found[2])}}}", text)
