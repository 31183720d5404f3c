r"""Computer algebra on untrusted formulas, in a separate process: ``python -m bpac.grading.mathematics.algebra``.

A formula can have more digits than fit in memory, and Python cannot be interrupted while it evaluates one. So this
module never runs in the process that serves requests. It is the only module that imports math-verify.
"""

import logging
import re
from functools import lru_cache
from typing import Any

import math_verify
from sympy import Expr, N, Rational, expand, simplify

from bpac.grading.mathematics.notation import readings
from bpac.grading.mathematics.worker_processes import serve_lines
from bpac.grading.text.answer_text import Verdict

MEMORY = 2**30
_ONLY_WORDS = re.compile(r"[^\d\\^=<>+/*]*")
_VARIABLE = re.compile(r"(?<![\\a-zA-Z])[a-zA-Z](?![a-zA-Z])")
_ZEROS = re.compile(r"\.(0*)\d")
# The number of digits to which two numbers are evaluated to find a difference.
_DIGITS = 60
# The largest relative error of a rounded number.
_NEAR = Rational(1, 10**4)
_ROUNDING = Rational(1, 10**30)
_POINTS = (Rational(7, 3), Rational(-13, 5), Rational(29, 11))


def answer(question: list[str]) -> Verdict:
    """The verdict on two texts by a rule; the question is ``[rule, one text, other text]``."""
    rule, one, other = question
    try:
        return {"lenient": lenient, "sentence": in_sentence, "exact": exact}[rule](one, other)
    except Exception:  # the libraries raise many kinds of errors; none of them proves anything about the answers
        return None


def lenient(wanted: str, got: str) -> Verdict:
    """Whether an answer equals the reference by math-verify's rules: to six digits, and units are ignored."""
    # "4t" is four times t, not four tonnes: letters can be units only if the reference has no variables.
    units = not _VARIABLE.search(wanted)
    rounding = 6 + max((len(zeros) for zeros in _ZEROS.findall(wanted + " " + got)), default=0)
    references = [_parsed(reading, units) for reading in readings(wanted)]
    answers = [_parsed(reading, units) for reading in readings(got)]
    verdicts = [_verify(one, other, rounding) for one in references if one for other in answers if other]
    if any(verdicts):
        return True
    if not verdicts and _ONLY_WORDS.fullmatch(wanted) and _ONLY_WORDS.fullmatch(got):
        return False
    return False if False in verdicts else None


def in_sentence(wanted: str, sentence: str) -> Verdict:
    """Whether the answer that math-verify finds in a sentence equals the reference."""
    reference = _parsed(wanted, True)
    found = math_verify.parse(sentence, parsing_timeout=None)
    if not found:
        return False
    return _verify(reference, tuple(found), 6) if reference else None


def exact(one: str, other: str) -> Verdict:
    """Whether two formulas are equal, as numbers or as functions of their variables, without rounding."""
    ours, theirs = _formula(one), _formula(other)
    if ours is None or theirs is None:
        return None
    symbols = sorted(ours.free_symbols | theirs.free_symbols, key=str)
    # Evaluating both at a few points first takes a tenth of the time and separates most formulas that differ.
    for shift in range(len(_POINTS)):
        point = {symbol: _POINTS[(at + shift) % len(_POINTS)] for at, symbol in enumerate(symbols)}
        here, there = (N(side.subs(point), _DIGITS) for side in (ours, theirs))
        if abs(here - there) > abs(here) * _ROUNDING:
            return False
    difference = ours - theirs
    return True if expand(difference) == 0 or simplify(difference) == 0 else None


def _formula(text: str) -> Any:
    found = [one for one in _parsed(text, False) if not isinstance(one, str)]
    return found[0] if len(found) == 1 and isinstance(found[0], Expr) else None


@lru_cache(maxsize=1024)
def _parsed(text: str, units: bool) -> tuple[Any, ...]:
    """The expressions that math-verify parses from a text; empty if it cannot parse it."""
    usual = math_verify.LatexExtractionConfig().normalization_config
    config = math_verify.LatexExtractionConfig(normalization_config=type(usual)(**{**vars(usual), "units": units}))
    found = math_verify.parse(rf"\boxed{{{text}}}", [config], parsing_timeout=None)
    return () if all(isinstance(one, str) for one in found) else tuple(found)


def _far_apart(reference: tuple[Any, ...], found: tuple[Any, ...]) -> bool:
    """Whether all readings are numbers and no two are close: math-verify treats all tiny numbers as equal."""
    pairs = [(one, other) for one in reference for other in found if not isinstance(one, str) | isinstance(other, str)]
    if not all(isinstance(side, Expr) and side.is_number for pair in pairs for side in pair):
        return False
    numbers = [(N(one.doit(), _DIGITS), N(other.doit(), _DIGITS)) for one, other in pairs]
    return all(abs(one - other) > abs(one) * _NEAR for one, other in numbers)


def _verify(reference: tuple[Any, ...], found: tuple[Any, ...], rounding: int) -> Verdict:
    try:
        verdict = math_verify.verify(
            list(reference),
            list(found),
            float_rounding=rounding,
            allow_set_relation_comp=True,
            timeout_seconds=None,
            raise_on_error=True,
        )
        return bool(verdict) and not _far_apart(reference, found)
    except Exception:  # as in answer()
        return None


if __name__ == "__main__":
    # math-verify warns that its own time limit is off; ``WorkerProcesses`` limits the time instead.
    logging.getLogger("math_verify").setLevel(logging.ERROR)
    serve_lines(answer, MEMORY)
