"""Questions about numbers. The larger number comes first, so no held-out question is a reversed training question."""

from collections.abc import Sequence
from random import Random

from bpac.local.worked_question import WorkedQuestion


def addition(digits: int, rng: Random) -> WorkedQuestion:
    """A sum of two numbers; the steps add column by column from the right.

    >>> question = addition(3, Random(0))
    >>> question.steps, question.draft
    ('4+6+0=10;6+7+1=14;9+8+1=18', '10;14;18')
    """
    large, small = _two(digits, rng)
    steps, carry = [], 0
    for top, bottom in _columns(large, small):
        steps.append(f"{top}+{bottom}+{carry}={top + bottom + carry}")
        carry = (top + bottom + carry) // 10
    return _worked(f"{large} + {small}", str(large + small), steps, "addition", digits)


def subtraction(digits: int, rng: Random) -> WorkedQuestion:
    """A difference that is not negative; the steps show the ten that a column borrows.

    >>> question = subtraction(2, Random(1))
    >>> question.text, question.steps, question.draft, question.answer
    ('42 - 27', '12-7-0=5;4-2-1=1', '5;1', '15')
    """
    large, small = _two(digits, rng)
    steps, borrowed = [], 0
    for top, bottom in _columns(large, small):
        ten = 10 if top - borrowed < bottom else 0
        steps.append(f"{top + ten}-{bottom}-{borrowed}={top + ten - bottom - borrowed}")
        borrowed = ten // 10
    return _worked(f"{large} - {small}", str(large - small), steps, "subtraction", digits)


def multiple(digits: int, rng: Random) -> WorkedQuestion:
    """A product of a number and one digit.

    >>> multiple(2, Random(1)).steps
    '7*3+0=21;2*3+2=8'
    """
    large, small = _number(digits, rng), rng.randint(2, 9)
    steps, carry = [], 0
    for top in reversed(str(large)):
        steps.append(f"{top}*{small}+{carry}={int(top) * small + carry}")
        carry = (int(top) * small + carry) // 10
    return _worked(f"{large} * {small}", str(large * small), steps, "multiple", digits)


def remainder(digits: int, rng: Random) -> WorkedQuestion:
    """The remainder of a division by one digit; the steps are those of long division.

    >>> remainder(3, Random(1)).steps
    '2%7=2;23%7=2;27%7=6'
    """
    number, divisor = _number(digits, rng), rng.randint(3, 9)
    steps, rest = [], 0
    for digit in str(number):
        shown = 10 * rest + int(digit)
        rest = shown % divisor
        steps.append(f"{shown}%{divisor}={rest}")
    return _worked(f"{number} mod {divisor}", str(rest), steps, "remainder", digits)


def chain(operations: int, rng: Random) -> WorkedQuestion:
    """The last digit after several additions and multiplications, from left to right.

    >>> question = chain(2, Random(1))
    >>> question.text, question.steps, question.answer
    ('last digit: 2, +2, *7', '2+2=4;4*7=28', '8')
    """
    digit = rng.randint(0, 9)
    text, steps = f"last digit: {digit}", []
    for _ in range(operations):
        # Only factors that keep all digits apart: a factor of 5 would make earlier steps nearly irrelevant.
        sign, other = rng.choice([("+", rng.randint(1, 9)), ("*", rng.choice((3, 7, 9)))])
        value = digit + other if sign == "+" else digit * other
        text += f", {sign}{other}"
        steps.append(f"{digit}{sign}{other}={value}")
        digit = value % 10
    return _worked(text, str(digit), steps, "chain", operations)


def _worked(text: str, answer: str, steps: Sequence[str], kind: str, difficulty: int) -> WorkedQuestion:
    """A question whose steps are equations; its draft has only their results."""
    draft = ";".join(step.split("=")[1] for step in steps)
    return WorkedQuestion(text, answer, ";".join(steps), draft, kind, difficulty)


def _number(digits: int, rng: Random) -> int:
    return rng.randint(10 ** (digits - 1), 10**digits - 1)


def _two(digits: int, rng: Random) -> tuple[int, int]:
    first, second = _number(digits, rng), _number(rng.randint(2, digits), rng)
    return max(first, second), min(first, second)


def _columns(first: int, second: int) -> list[tuple[int, int]]:
    """The digits of two numbers in columns, from the right."""
    width = max(len(str(first)), len(str(second)))
    pairs = zip(f"{first:0{width}}", f"{second:0{width}}", strict=True)
    return [(int(top), int(bottom)) for top, bottom in pairs][::-1]
