r"""Whether a mathematical answer equals a reference that is known to be correct, by math-verify's lenient rules.

Formulas are compared in processes that are killed if they take too long (``bpac.grading.mathematics.algebra``).
"""

import importlib.util
import re
from decimal import Decimal

from bpac.errors import MissingExtra
from bpac.grading.mathematics.notation import number_base, spelled_out
from bpac.grading.mathematics.worker_processes import TookTooLong, WorkerProcesses, closed_at_exit
from bpac.grading.text.answer_text import AnswerText, Verdict, first_sentence, too_long
from bpac.grading.text.boxes import boxes

# The longest answer that is compared as mathematics, in characters, and the time limit of one comparison.
LONGEST = 400
SECONDS = 5.0

_SET_AS_TEXT = re.compile(r"\\(?:text|mbox|mathrm|textbf)\{([^{}]*)\}")
_WORD = re.compile(r"(?<![\\a-zA-Z])[A-Za-z]{2,}")
_ENVIRONMENT = re.compile(r"\\(?:begin|end)\{\w+\}")
_PLAIN = re.compile(r"-?(?:\d+(?:\.\d*)?|\.\d+)", re.ASCII)
_VARIABLE = re.compile(r"(?<![\\a-zA-Z])[a-zA-Z](?![a-zA-Z])")
_OPERATION = re.compile(r"[-+*/^\d]")
_MATHEMATICS = re.compile(r"[\d\\$=]")

_processes = closed_at_exit(WorkerProcesses("bpac.grading.mathematics.algebra"))


def same_mathematics(reference: str, given: str, seconds: float = SECONDS) -> Verdict:
    r"""Whether an answer equals the reference; ``None`` if it cannot be parsed or compared in time.

    Parameters
    ----------
    reference: the correct answer in TeX.
    given: the answer to grade, in TeX or as people type it.
    seconds: time limit of the comparison.

    >>> same_mathematics(r"\frac{1}{2}", "0.5"), same_mathematics(r"\frac{1}{2}", "1/3")
    (True, False)
    """
    if max(len(reference), len(given)) > LONGEST:
        return None
    wanted, got = spelled_out(reference), spelled_out(given)
    if not got:
        return False
    if _same_text(wanted, got):
        return not _other_bases(wanted, got)
    if _PLAIN.fullmatch(wanted) and _PLAIN.fullmatch(got):
        return Decimal(wanted) == Decimal(got)  # exact decimals must match exactly; other numbers may be rounded
    # math-verify reads the ratio 3:1 as 3, and the equation 2x + y = 0 as 0.
    if _other_bases(wanted, got) or (":" in wanted) != (":" in got) or _is_equation(wanted) != _is_equation(got):
        return False
    return ask_algebra("lenient", wanted, got, seconds)


def grade_mathematics(reference: str, text: str, finished: bool = True) -> Verdict:
    r"""Grade a model's answer against the correct answer.

    Parameters
    ----------
    reference: the correct answer in TeX.
    text: the model's answer, with or without its reasoning.
    finished: whether the model stopped by itself; false if it was cut off.

    >>> grade_mathematics("2", r"<think>3?</think>The roots add up to $\boxed{2}$.")
    True
    >>> grade_mathematics("2", "I cannot say."), grade_mathematics("2", "First we", finished=False)
    (False, None)
    """
    if too_long(text):
        return None
    answer = AnswerText.read(text, finished)
    marked, lines = answer.marked(), answer.lines()
    if marked and boxes(answer.text):
        return _grade_answer(reference, marked[0])
    for line in (*marked[:1], *lines[-1:]):
        return _grade_line(reference, line)
    return answer.without_answer()


def _grade_line(reference: str, line: str) -> Verdict:
    """The verdict on a line that may continue in words after the answer: "12. This follows from above."."""
    first = first_sentence(line)
    if len(line) > LONGEST:
        return None
    if first == line.rstrip(".!?") or not _MATHEMATICS.search(first):
        return _grade_answer(reference, line.rstrip(".!?"))
    # A second sentence that contains numbers may change the answer.
    return None if _MATHEMATICS.search(line[len(first) + 1 :]) else _grade_answer(reference, first)


def _grade_answer(reference: str, answer: str) -> Verdict:
    if max(len(reference), len(answer)) > LONGEST:
        return None
    wanted, got = spelled_out(reference), spelled_out(answer)
    words = len(_WORD.findall(_ENVIRONMENT.sub("", _SET_AS_TEXT.sub("", got))))
    # As TeX, "There are 5 of them" would be a product of a dozen variables.
    verdict = same_mathematics(reference, answer) if words < 2 or _same_text(wanted, got) else False
    return verdict if verdict or not words else ask_algebra("sentence", wanted, answer)


def ask_algebra(
    rule: str, one: str, other: str, seconds: float = SECONDS, processes: WorkerProcesses | None = None
) -> Verdict:
    """The verdict of ``bpac.grading.mathematics.algebra``; ``None`` if it needs too much time or memory.

    Parameters
    ----------
    rule: the rule of the comparison: ``lenient``, ``sentence`` or ``exact``.
    one, other: the formulas.
    seconds: time limit of the comparison.
    processes: the worker processes to use (default: those of this module).
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
    """Whether a text relates variables to each other; x = 5 and 3 · 4 = 12 only give a value."""
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
    # "1:03 p.m." equals "1:03 PM", but 5.4 cents are not 54 cents.
    return re.sub(r"(?<!\d)\.|\.(?!\d)|[^a-z0-9:.-]", "", _SET_AS_TEXT.sub(r"\1", text).casefold())
