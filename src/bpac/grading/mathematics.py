r"""Whether two mathematical answers are the same, as math-verify judges it."""

import logging
import re
import threading
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from bpac.errors import MissingExtra
from bpac.grading.answers import Reply, Verdict, first_sentence
from bpac.grading.deadline import TookTooLong, within
from bpac.grading.notation import number_base, readings, spelt_out

LONGEST = 400
SECONDS = 5.0

# One comparison at a time: the parser keeps tables that all threads share.
_LOCK = threading.Lock()
# Towers of powers, exponents of five digits and factorials of large numbers would be worked out to the last digit.
_GIGANTIC = re.compile(r"\^\s*[{(]?[^{}()+*/-]*[\^!]|\^\s*[{(]?-?\d{5}|\d{5}\)?!|!\)?!")
_DEGREES = re.compile(r"\^\s*\{?\s*\\circ\s*\}?")
_WORD = re.compile(r"(?<![\\a-zA-Z])[A-Za-z]{2,}")
_SET_AS_TEXT = re.compile(r"\\(?:text|mbox|mathrm|textbf)\{([^{}]*)\}")
_ENVIRONMENT = re.compile(r"\\(?:begin|end)\{\w+\}")
_ONLY_WORDS = re.compile(r"[^\d\\^=<>+/*]*")
_VARIABLE = re.compile(r"(?<![\\a-zA-Z])[a-zA-Z](?![a-zA-Z])")
_ZEROS = re.compile(r"\.(0*)\d")


def same_mathematics(reference: str, given: str, seconds: float = SECONDS) -> Verdict:
    r"""Whether an answer is the reference; ``None`` when it cannot be read or compared in time.

    Parameters
    ----------
    reference: the right answer, as TeX.
    given: the answer to grade, as TeX or as people type.
    seconds: how long the comparison may take.

    >>> same_mathematics(r"\frac{1}{2}", "0.5"), same_mathematics(r"\frac{1}{2}", "1/3")
    (True, False)
    """
    wanted, got = spelt_out(reference), spelt_out(given)
    if not got:
        return False
    (_, base), (_, other_base) = number_base(wanted), number_base(got)
    if base and other_base and int(base) != int(other_base):
        return False
    if _same_text(wanted, got):
        return True
    if any(len(text) > LONGEST or _GIGANTIC.search(_DEGREES.sub("", text)) for text in (wanted, got)):
        return None
    return _in_time(seconds, lambda: _compare(wanted, got))


def grade_mathematics(reference: str, text: str, finished: bool = True) -> Verdict:
    r"""Grade what a model said against the right answer.

    Parameters
    ----------
    reference: the right answer, as TeX.
    text: what the model said, with or without its reasoning.
    finished: whether it came to an end by itself.

    >>> grade_mathematics("2", r"<think>3?</think>The roots add up to $\boxed{2}$.")
    True
    >>> grade_mathematics("2", "I cannot say."), grade_mathematics("2", "First we", finished=False)
    (False, None)
    """
    reply = Reply.read(text, finished)
    if marked := reply.marked():
        return _said(reference, first_sentence(marked[0]))
    if lines := reply.lines():
        return _said(reference, first_sentence(lines[-1]))
    return reply.without_answer()


def _said(reference: str, said: str) -> Verdict:
    wanted, got = spelt_out(reference), spelt_out(said)
    words = len(_WORD.findall(_ENVIRONMENT.sub("", _SET_AS_TEXT.sub("", got))))
    # Read as TeX, "There are 5 of them" is a product of a dozen letters.
    verdict = same_mathematics(reference, said) if words < 2 or _same_text(wanted, got) else False
    if verdict or not words or len(said) > LONGEST:
        return verdict
    # A sentence: the library knows where in it the answer stands.
    return _in_time(SECONDS, lambda: _compare_sentence(wanted, said))


def _in_time(seconds: float, compare: Callable[[], Verdict]) -> Verdict:
    _library()  # imported before the clock starts: a module must not be interrupted half-way
    with _LOCK:
        try:
            return within(seconds, compare)
        except TookTooLong:
            return None


def _compare(wanted: str, got: str) -> Verdict:
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


def _compare_sentence(wanted: str, said: str) -> Verdict:
    library = _library()
    right = _parsed(wanted, True)
    found = library.parse(said, parsing_timeout=None)
    if not found:
        return False
    return _verify(right, tuple(found), 6) if right else None


@lru_cache(maxsize=1024)
def _parsed(text: str, units: bool) -> tuple[Any, ...]:
    """The expression as the library reads it; nothing if it cannot."""
    library = _library()
    usual = library.LatexExtractionConfig().normalization_config
    config = library.LatexExtractionConfig(normalization_config=type(usual)(**{**vars(usual), "units": units}))
    found = library.parse(rf"\boxed{{{text}}}", [config], parsing_timeout=None)
    return () if all(isinstance(one, str) for one in found) else tuple(found)


def _verify(right: tuple[Any, ...], answer: tuple[Any, ...], rounding: int) -> Verdict:
    try:
        return bool(
            _library().verify(
                list(right),
                list(answer),
                float_rounding=rounding,
                allow_set_relation_comp=True,
                timeout_seconds=None,
                raise_on_error=True,
            )
        )
    except Exception:  # whatever algebra stumbles over, it has not shown the answer to be wrong
        return None


def _same_text(wanted: str, got: str) -> bool:
    (digits, _), (other_digits, _) = number_base(wanted), number_base(got)
    if _squeezed(digits) == _squeezed(other_digits):
        return True
    words = "\\text{" in wanted and "\\" not in _SET_AS_TEXT.sub("", wanted)
    return words and _letters(wanted) == _letters(got)


def _squeezed(text: str) -> str:
    return _SET_AS_TEXT.sub(r"\1", text).replace(" ", "").replace("\n", "")


def _letters(text: str) -> str:
    # "1:03 p.m." is "1:03 PM", but 5.4 cents are not 54.
    return re.sub(r"(?<!\d)\.|\.(?!\d)|[^a-z0-9:.-]", "", _SET_AS_TEXT.sub(r"\1", text).casefold())


@lru_cache(maxsize=1)
def _library() -> Any:
    try:
        import math_verify  # noqa: PLC0415  # an extra
    except ImportError as error:
        raise MissingExtra("math-verify", "grading") from error
    # It warns whoever turns its timeout off that there is none; there is one, and it works in threads.
    logging.getLogger("math_verify").setLevel(logging.ERROR)
    return math_verify
