"""Labelled pairs from benchmarks: one correct answer in two forms, or the correct answers to two questions."""

import random
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path

from bpac.benchmarks.benchmark import Benchmark, Question
from bpac.benchmarks.registry import BENCHMARKS
from bpac.errors import InputError
from bpac.grader_accuracy.labelled_pair import AnswerVariants, LabelledPair
from bpac.grader_accuracy.phrasing import phrase_answer
from bpac.grading.mathematics.notation import spelled_out
from bpac.grading.text.answer_text import Verdict

# The file names of the published data sets.
FILES: Mapping[str, str] = {
    "math": "math_test.jsonl.gz",
    "gsm8k": "gsm8k_test.jsonl.gz",
    "mmlu-pro": "mmlu_pro_test.jsonl.gz",
    "bbh": "bbh.jsonl.gz",
}
_OPTIONS = "ABCDEFGHIJ"
# Parts that do not change a number: spaces, currencies, units and degrees.
_IGNORED = re.compile(r" |\\text\{[^{}]*\}|\\mbox\{[^{}]*\}|\\[$%]|%|\^\\circ|\^\{\\circ\}")
_NAMED = re.compile(r"^[a-zA-Z]=")


def load_questions(folder: Path) -> dict[str, tuple[Question, ...]]:
    """The questions with a correct answer, by benchmark, for every benchmark whose file is in the folder."""
    found = {name: folder / file for name, file in FILES.items() if (folder / file).is_file()}
    if not found:
        raise InputError(f"--bench {folder}: the folder contains none of {', '.join(FILES.values())}")
    return {
        name: tuple(question for question in BENCHMARKS[name].load(path) if question.reference)
        for name, path in found.items()
    }


def reference_pairs(
    name: str, questions: Sequence[Question], count: int, same: bool, seed: int = 0
) -> Iterator[LabelledPair]:
    """Pairs of texts that give the correct answers to one question, or to two questions whose answers differ."""
    rng = random.Random(f"{seed} {name} {same}")
    for one, other in _drawn(questions, count, same, rng):
        answers = [_answer(question) for question in (one, other)]
        variants = AnswerVariants(answers[0], (), (), mathematics=name in ("math", "gsm8k"))
        yield LabelledPair(
            name, phrase_answer(variants, answers[0], rng), phrase_answer(variants, answers[1], rng), same
        )


def graded_pairs(
    name: str, questions: Sequence[Question], count: int, same: bool, seed: int = 0
) -> Iterator[tuple[LabelledPair, Callable[[], Verdict]]]:
    """Pairs of a reply and a correct answer, and a function that grades the reply with the benchmark's grader."""
    rng = random.Random(f"{seed} {name} graded {same}")
    benchmark = BENCHMARKS[name]
    for one, other in _drawn(questions, count, same, rng):
        form = "It follows that $\\boxed{{{}}}$." if name in ("math", "gsm8k") else "So the answer is {}."
        reply = form.format(other.reference)
        pair = LabelledPair(name, reply, one.reference or "", same)
        yield pair, _grading(benchmark, one, reply)


def _grading(benchmark: Benchmark, question: Question, reply: str) -> Callable[[], Verdict]:
    return lambda: benchmark.grade(question, reply)


def _drawn(
    questions: Sequence[Question], count: int, same: bool, rng: random.Random
) -> Iterator[tuple[Question, Question]]:
    by_category = defaultdict(list)
    for question in questions:
        by_category[question.category].append(question)
    drawn = 0
    while drawn < count:
        one = rng.choice(questions)
        other = one if same else rng.choice(by_category[one.category])
        if same or _known_to_differ(one, other):
            yield one, other
            drawn += 1


def _answer(question: Question) -> str:
    """The correct answer as text: the text of the correct option, if the question has options."""
    reference = question.reference or ""
    return question.options[_OPTIONS.index(reference)] if question.options else reference


def _known_to_differ(one: Question, other: Question) -> bool:
    """Whether the answers to both questions differ, as options and as texts or plain numbers; no grader is used."""
    return all(_value(get(one)) != _value(get(other)) for get in (_answer, lambda question: question.reference or ""))


def _value(answer: str) -> Fraction | str:
    spelled = spelled_out(answer)
    text = _NAMED.sub("", _IGNORED.sub("", spelled)).removesuffix(".") or spelled
    number = text.replace(",", "").replace("\\frac{", "").replace("}{", "/").removesuffix("}")
    try:
        return Fraction(number)
    except (ValueError, ZeroDivisionError):
        return text.casefold()
