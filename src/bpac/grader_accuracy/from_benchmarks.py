"""Labelled pairs from published benchmarks: a right answer in two forms, and the right answers to two questions."""

import random
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path

from bpac.benchmarks.benchmark import Benchmark, Question
from bpac.benchmarks.registry import BENCHMARKS
from bpac.errors import InputError
from bpac.grader_accuracy.pair import LabelledPair, Meant
from bpac.grader_accuracy.saying import said
from bpac.grading.mathematics.notation import spelt_out
from bpac.grading.text.reply import Verdict

# The published files, where they are known by these names.
FILES: Mapping[str, str] = {
    "math": "math_test.jsonl.gz",
    "gsm8k": "gsm8k_test.jsonl.gz",
    "mmlu-pro": "mmlu_pro_test.jsonl.gz",
    "bbh": "bbh.jsonl.gz",
}
_OPTIONS = "ABCDEFGHIJ"
# What does not change a number: spaces, currencies, units, degrees and the name of a variable.
_IDLE = re.compile(r" |\\text\{[^{}]*\}|\\mbox\{[^{}]*\}|\\[$%]|%|\^\\circ|\^\{\\circ\}")
_NAMED = re.compile(r"^[a-zA-Z]=")


def load_questions(folder: Path) -> dict[str, tuple[Question, ...]]:
    """The questions that have a right answer, of every benchmark whose file is in the folder, by its name."""
    found = {name: folder / file for name, file in FILES.items() if (folder / file).is_file()}
    if not found:
        raise InputError(f"--bench {folder}: none of {', '.join(FILES.values())} is there")
    return {
        name: tuple(question for question in BENCHMARKS[name].load(path) if question.reference)
        for name, path in found.items()
    }


def reference_pairs(
    name: str, questions: Sequence[Question], count: int, same: bool, seed: int = 0
) -> Iterator[LabelledPair]:
    """Pairs of texts that give the right answers to one question, or to two whose answers differ."""
    draw = random.Random(f"{seed} {name} {same}")
    for one, other in _drawn(questions, count, same, draw):
        answers = [_answer(question) for question in (one, other)]
        meant = Meant(answers[0], (), (), mathematics=name in ("math", "gsm8k"))
        yield LabelledPair(name, said(meant, answers[0], draw), said(meant, answers[1], draw), same)


def graded_pairs(
    name: str, questions: Sequence[Question], count: int, same: bool, seed: int = 0
) -> Iterator[tuple[LabelledPair, Callable[[], Verdict]]]:
    """Pairs of a right answer and a reply to grade against it, and how the benchmark grades it."""
    draw = random.Random(f"{seed} {name} graded {same}")
    benchmark = BENCHMARKS[name]
    for one, other in _drawn(questions, count, same, draw):
        form = "It follows that $\\boxed{{{}}}$." if name in ("math", "gsm8k") else "So the answer is {}."
        reply = form.format(other.reference)
        pair = LabelledPair(name, reply, one.reference or "", same)
        yield pair, _grading(benchmark, one, reply)


def _grading(benchmark: Benchmark, question: Question, reply: str) -> Callable[[], Verdict]:
    return lambda: benchmark.grade(question, reply)


def _drawn(
    questions: Sequence[Question], count: int, same: bool, draw: random.Random
) -> Iterator[tuple[Question, Question]]:
    by_category = defaultdict(list)
    for question in questions:
        by_category[question.category].append(question)
    drawn = 0
    while drawn < count:
        one = draw.choice(questions)
        other = one if same else draw.choice(by_category[one.category])
        if same or _known_to_differ(one, other):
            yield one, other
            drawn += 1


def _answer(question: Question) -> str:
    """The right answer in words: the text of the right option, where there are options."""
    reference = question.reference or ""
    return question.options[_OPTIONS.index(reference)] if question.options else reference


def _known_to_differ(one: Question, other: Question) -> bool:
    """Whether the answers to both questions differ, as options and as texts or plain numbers, without any grader."""
    return all(_value(get(one)) != _value(get(other)) for get in (_answer, lambda question: question.reference or ""))


def _value(answer: str) -> Fraction | str:
    spelt = spelt_out(answer)
    text = _NAMED.sub("", _IDLE.sub("", spelt)).removesuffix(".") or spelt
    number = text.replace(",", "").replace("\\frac{", "").replace("}{", "/").removesuffix("}")
    try:
        return Fraction(number)
    except (ValueError, ZeroDivisionError):
        return text.casefold()
