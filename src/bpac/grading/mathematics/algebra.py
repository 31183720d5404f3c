r"""Computer algebra on foreign formulas, run in a process of its own: ``python -m bpac.grading.mathematics.algebra``.

A formula can ask for more digits than fit in memory, and nothing stops Python while it works one out, so this module
is never used in the process that serves. It is the only one that imports math-verify.
"""

import logging
import re
from functools import lru_cache
from typing import Any

import math_verify
from sympy import Expr, N, Rational, expand, simplify

from bpac.grading.mathematics.notation import readings
from bpac.grading.mathematics.processes import serve_lines
from bpac.grading.text.reply import Verdict

MEMORY = 2**30
_ONLY_WORDS = re.compile(r"[^\d\\^=<>+/*]*")
_VARIABLE = re.compile(r"(?<![\\a-zA-Z])[a-zA-Z](?![a-zA-Z])")
_ZEROS = re.compile(r"\.(0*)\d")
# Digits to which two numbers are worked out to see that they differ.
_DIGITS = 60
# How far a rounded number may be from the one it stands for, as a share of it.
_NEAR = Rational(1, 10**4)
_ROUNDING = Rational(1, 10**30)
_POINTS = (Rational(7, 3), Rational(-13, 5), Rational(29, 11))


def answer(question: list[str]) -> Verdict:
    """The verdict that is asked for: by which rule, on which two texts."""
    rule, one, other = question
    try:
        return {"lenient": lenient, "sentence": in_sentence, "exact": exact}[rule](one, other)
    except Exception:  # whatever algebra stumbles over, it has shown nothing
        return None


def lenient(wanted: str, got: str) -> Verdict:
    """Whether an answer is the reference as math-verify judges it: to six digits, and units do not count."""
    # "4t" is four times t, not four tonnes: units are units only where the right answer has no letters.
    units = not _VARIABLE.search(wanted)
    rounding = 6 + max((len(zeros) for zeros in _ZEROS.findall(wanted + " " + got)), default=0)
    right = [_parsed(way, units) for way in readings(wanted)]
    answers = [_parsed(way, units) for way in readings(got)]
    verdicts = [_verify(one, other, rounding) for one in right if one for other in answers if other]
    if any(verdicts):
        return True
    if not verdicts and _ONLY_WORDS.fullmatch(wanted) and _ONLY_WORDS.fullmatch(got):
        return False
    return False if False in verdicts else None


def in_sentence(wanted: str, said: str) -> Verdict:
    """Whether a sentence gives the reference; the library knows where in it the answer stands."""
    right = _parsed(wanted, True)
    found = math_verify.parse(said, parsing_timeout=None)
    if not found:
        return False
    return _verify(right, tuple(found), 6) if right else None


def exact(one: str, other: str) -> Verdict:
    """Whether two formulas are equal, as numbers or as functions of their variables, without any rounding."""
    ours, theirs = _formula(one), _formula(other)
    if ours is None or theirs is None:
        return None
    symbols = sorted(ours.free_symbols | theirs.free_symbols, key=str)
    # Different formulas mostly differ where they are looked at first, which takes a tenth of the time of algebra.
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
    """The expression as the library reads it; nothing if it cannot."""
    usual = math_verify.LatexExtractionConfig().normalization_config
    config = math_verify.LatexExtractionConfig(normalization_config=type(usual)(**{**vars(usual), "units": units}))
    found = math_verify.parse(rf"\boxed{{{text}}}", [config], parsing_timeout=None)
    return () if all(isinstance(one, str) for one in found) else tuple(found)


def _far_apart(right: tuple[Any, ...], found: tuple[Any, ...]) -> bool:
    """Whether all readings are numbers and no two are near: the library takes differences of tiny numbers for 0."""
    pairs = [(one, other) for one in right for other in found if not isinstance(one, str) | isinstance(other, str)]
    if not all(isinstance(side, Expr) and side.is_number for pair in pairs for side in pair):
        return False
    numbers = [(N(one.doit(), _DIGITS), N(other.doit(), _DIGITS)) for one, other in pairs]
    return all(abs(one - other) > abs(one) * _NEAR for one, other in numbers)


def _verify(right: tuple[Any, ...], found: tuple[Any, ...], rounding: int) -> Verdict:
    try:
        verdict = math_verify.verify(
            list(right),
            list(found),
            float_rounding=rounding,
            allow_set_relation_comp=True,
            timeout_seconds=None,
            raise_on_error=True,
        )
        return bool(verdict) and not _far_apart(right, found)
    except Exception:  # as above
        return None


if __name__ == "__main__":
    # It warns that its own time limit is off; the one of ``Processes`` is on.
    logging.getLogger("math_verify").setLevel(logging.ERROR)
    serve_lines(answer, MEMORY)
