"""Equivalence of mathematical answers: equal, different and unknown."""

import sys
import threading

import pytest

from bpac.errors import MissingExtra
from bpac.grading.mathematics import algebra
from bpac.grading.mathematics.equivalence import grade_mathematics, same_mathematics
from bpac.grading.text.answer_text import Verdict


@pytest.mark.parametrize(
    ("reference", "given"),
    [
        ("\\frac{1}{2}", "0.5"), ("\\frac{1}{3}", "0.33333333"), ("-\\frac1{2x}", "-1/(2x)"), ("x=5", "5"),
        ("5", "x = 5"),
        ("(x+1)^2", "x^2+2x+1"), ("1,2,3", "3, 1 and 2"), ("1 \\pm \\sqrt{19}", "1-\\sqrt{19}, 1+\\sqrt{19}"),
        ("25 \\text{ ft}", "25"), ("25", "25 feet"), ("18", "\\$18.00"), ("7.2\\%", "7.2"), ("20\\%", "0.2"),
        ("10,\\!080", "10080"), ("15,600", "15600"), ("70,110", "110, 70"), ("40_9", "40"), ("152A_{11}", "152A"),
        ("\\text{(B)}", "B"), ("\\text{A,C,F}", "F, A, C"), ("\\text{1:03 PM}", "1:03 p.m."),
        ("\\text{Navin}", "Navin"),
        ("\\cos 13^\\circ", "\\sin 77^\\circ"), ("[-2,7]", "-2 \\le x \\le 7"), ("\\frac{\\sqrt{3}}{2}", "√3/2"),
        ("\\begin{pmatrix} 1/5 \\\\ -3/5 \\end{pmatrix}", "\\begin{bmatrix} 0.2 \\\\ -0.6 \\end{bmatrix}"),
        ("\\frac \\pi4 + 2 - \\sqrt2", "2-\\sqrt{2}+\\frac{\\pi}{4}"), ("2^{2005}", "2 \\cdot 2^{2004}"),
    ],
)  # fmt: skip
def test_another_notation_is_the_same_answer(reference: str, given: str) -> None:
    """Notation, the order of a set, units and typography do not change an answer."""
    assert same_mathematics(reference, given) is True


@pytest.mark.parametrize(
    ("reference", "given"),
    [
        ("\\frac{1}{2}", "0.51"), ("(1,2)", "(2,1)"), ("40_9", "40_7"), ("4t", "4"), (".0000672", ".0000671"),
        ("5", "-5"),
        ("\\frac{1}{2004!}", "0.0"), ("5", "Navin"), ("\\text{Navin}", "Dana"), ("[1,2]", "(1,2)"), ("1,2", "1,2,3"),
        ("x^2", "x^3"), ("\\sqrt{2}", "2"), ("70110", "70, 110"), ("-\\frac1{2x}", "-\\frac{x}{2}"), ("5", ""),
        ("3", "3:1"), ("0", "10x - 4y - 20 = 0"), ("2x + y = 0", "0"),
        ("5.4 \\text{ cents}", "54 cents"), ("\\frac{68}{3}\\text{ pounds}", "\\frac{6}{83}\\text{ pounds}"),
    ],
)  # fmt: skip
def test_different_mathematics_is_wrong(reference: str, given: str) -> None:
    """Another number, another order of coordinates, another base and another interval are different answers."""
    assert same_mathematics(reference, given) is False


@pytest.mark.parametrize("given", ["x" * 500, "\\frac{1}{"])
def test_an_expression_that_cannot_be_parsed_is_unknown(given: str) -> None:
    """Very long and broken expressions get no verdict."""
    assert same_mathematics("2", given) is None


@pytest.mark.parametrize("given", ["9^{9999\\cdot 9999}", "10^{10^{10^{10}}}", "9^{99999999}"])
def test_a_gigantic_number_is_unknown(given: str) -> None:
    """An operation that Python cannot interrupt is ended with its process, and the verdict is unknown, not wrong."""
    assert same_mathematics("2", given, seconds=0.5) is None
    assert same_mathematics("2", "2.0") is True


def test_an_exception_in_math_verify_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """An exception in the library does not make the answer wrong."""

    def fail(*args: object, **settings: object) -> bool:
        raise ZeroDivisionError

    monkeypatch.setattr("math_verify.verify", fail)
    assert algebra.answer(["lenient", "2", "x + 3"]) is None


@pytest.mark.parametrize(
    ("one", "other"),
    [("2^{-200}", "2^{-201}"), ("0.1234567", "0.1234568"), ("10^{-30}", "0"), ("1000000.25", "1000000.5")],
)
def test_small_differences_make_numbers_different(one: str, other: str) -> None:
    """Numbers that differ in their last digits, or that are both tiny, are different."""
    assert same_mathematics(one, other) is False


def test_threads_agree_with_the_main_thread() -> None:
    """Eight threads that grade at the same time get the same verdicts as one."""
    cases = [(str(number), f"{number}.0" if number % 2 else f"{number + 1}.0") for number in range(1000, 1040)]
    found: dict[tuple[str, str], Verdict] = {}

    def grade(mine: list[tuple[str, str]]) -> None:
        for case in mine:
            found[case] = same_mathematics(*case)

    threads = [threading.Thread(target=grade, args=(cases[start::8],)) for start in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {(reference, given): float(reference) == float(given) for reference, given in cases}


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("There are 12 of them.", True),
        ("She makes $12 every day.", True),
        ("It is $3 \\cdot 4 = 12$.", True),
        ("The answer is approximately 12.", True),
        ("There are 13 of them.", False),
        ("I have no idea.", False),
        ("", False),
        ("<think>It is 12</think>", False),
        ("<think>It is 12", None),
    ],
)
def test_an_answer_in_prose_is_found(text: str, verdict: Verdict) -> None:
    """Without a mark, the last line is parsed as a sentence; reasoning is never graded."""
    assert grade_mathematics("12", text) is verdict


def test_an_answer_before_the_cut_counts() -> None:
    """A model that was cut off is graded only if it had given a complete answer before."""
    assert grade_mathematics("12", "First, 3 times 4", finished=False) is None
    assert grade_mathematics("12", "\\boxed{12} since", finished=False) is True
    assert grade_mathematics("12", "The answer is 1", finished=False) is None


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without math-verify the error says what to install."""
    monkeypatch.setitem(sys.modules, "math_verify", None)
    with pytest.raises(MissingExtra, match=r"math-verify.*bpac\[grading\]"):
        same_mathematics("2", "x + 3")
    monkeypatch.undo()
    assert same_mathematics("2", "x + 3") is False
