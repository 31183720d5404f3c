r"""Whether two mathematical answers are the same: as math-verify judges it, or exactly.

Formulas are worked out in processes that are killed when they take too long (``bpac.grading.mathematics.algebra``).
"""

import importlib.util
import re
from decimal import Decimal

from bpac.errors import MissingExtra
from bpac.grading.mathematics.notation import number_base, spelt_out
from bpac.grading.mathematics.processes import Processes, TookTooLong, closed_at_exit
from bpac.grading.text.boxes import boxes
from bpac.grading.text.reply import AnswerText, Verdict, first_sentence, too_long

# The longest answer that is compared as mathematics, in characters, and how long one comparison may take.
LONGEST = 400
SECONDS = 5.0

_SET_AS_TEXT = re.compile(r"\\(?:text|mbox|mathrm|textbf)\{([^{}]*)\}")
_WORD = re.compile(r"(?<![\\a-zA-Z])[A-Za-z]{2,}")
_ENVIRONMENT = re.compile(r"\\(?:begin|end)\{\w+\}")
_PLAIN = re.compile(r"-?(?:\d+(?:\.\d*)?|\.\d+)", re.ASCII)
_VARIABLE = re.compile(r"(?<![\\a-zA-Z])[a-zA-Z](?![a-zA-Z])")
_OPERATION = re.compile(r"[-+*/^\d]")
_MATHEMATICS = re.compile(r"[\d\\$=]")

_processes = closed_at_exit(Processes("bpac.grading.mathematics.algebra"))


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
    if max(len(reference), len(given)) > LONGEST:
        return None
    wanted, got = spelt_out(reference), spelt_out(given)
    if not got:
        return False
    if _same_text(wanted, got):
        return not _other_bases(wanted, got)
    if _PLAIN.fullmatch(wanted) and _PLAIN.fullmatch(got):
        return Decimal(wanted) == Decimal(got)  # only what has no such form may be rounded
    # The library takes the ratio 3:1 for 3, and 2x + y = 0 for 0.
    if _other_bases(wanted, got) or (":" in wanted) != (":" in got) or _is_equation(wanted) != _is_equation(got):
        return False
    return ask_algebra("lenient", wanted, got, seconds)


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
    if too_long(text):
        return None
    reply = AnswerText.read(text, finished)
    marked, lines = reply.marked(), reply.lines()
    if marked and boxes(reply.text):
        return _said(reference, marked[0])
    for said in (*marked[:1], *lines[-1:]):
        return _stated(reference, said)
    return reply.without_answer()


def _stated(reference: str, said: str) -> Verdict:
    """The verdict on a line, which may go on in words after its answer: "12. This follows from above."."""
    first = first_sentence(said)
    if len(said) > LONGEST:
        return None
    if first == said.rstrip(".!?") or not _MATHEMATICS.search(first):
        return _said(reference, said.rstrip(".!?"))
    # A second sentence with numbers of its own may change the answer.
    return None if _MATHEMATICS.search(said[len(first) + 1 :]) else _said(reference, first)


def _said(reference: str, said: str) -> Verdict:
    if max(len(reference), len(said)) > LONGEST:
        return None
    wanted, got = spelt_out(reference), spelt_out(said)
    words = len(_WORD.findall(_ENVIRONMENT.sub("", _SET_AS_TEXT.sub("", got))))
    # Read as TeX, "There are 5 of them" is a product of a dozen letters.
    verdict = same_mathematics(reference, said) if words < 2 or _same_text(wanted, got) else False
    return verdict if verdict or not words else ask_algebra("sentence", wanted, said)


def ask_algebra(
    rule: str, one: str, other: str, seconds: float = SECONDS, processes: Processes | None = None
) -> Verdict:
    """The verdict of ``bpac.grading.mathematics.algebra``; ``None`` if it takes too much time or memory.

    Parameters
    ----------
    rule: by which two formulas are compared: ``lenient``, ``sentence`` or ``exact``.
    one, other: the formulas.
    seconds: how long the comparison may take.
    processes: where to compare; those of this module unless given.
    """
    check_algebra()
    try:
        verdict: Verdict = (processes or _processes).ask([rule, one, other], seconds)
    except TookTooLong:
        return None
    return verdict


def check_algebra() -> None:
    """Raise ``MissingExtra`` if math-verify is not installed."""
    if importlib.util.find_spec("math_verify") is None:
        raise MissingExtra("math-verify", "grading")


def _other_bases(wanted: str, got: str) -> bool:
    (_, base), (_, other_base) = number_base(wanted), number_base(got)
    return bool(base and other_base and int(base) != int(other_base))


def _is_equation(text: str) -> bool:
    """Whether it relates variables to each other; x = 5 and 3 · 4 = 12 only give a value."""
    left, equals, _ = text.partition("=")
    return bool(equals and _VARIABLE.search(left) and _OPERATION.search(left))


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
