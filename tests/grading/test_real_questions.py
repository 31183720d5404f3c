"""The benchmarks' graders on every question of the published data sets."""

import random
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

from bpac.benchmarks.benchmark import Benchmark, Question
from bpac.benchmarks.registry import BENCHMARKS
from bpac.grading.choices.bbh_tasks import TASKS, AnswerKind
from bpac.grading.mathematics import equivalence
from tests.grading import rewritings

BENCH = Path(__file__).parents[2].parent / "shared" / "bench"
pytestmark = pytest.mark.skipif(not BENCH.is_dir(), reason="the folder with the benchmark files does not exist")

FILES = {"math": "math_test", "mmlu-pro": "mmlu_pro_test", "bbh": "bbh"}
SIZES = {"math": 5_000, "mmlu-pro": 12_032, "bbh": 6_511}

# The text of the correct option is the label of another one ("Option B", "E", "(a)", "c", "b"), so the text alone names
# that other option.
TEXT_IS_A_LABEL = {"293", "8057", "10400", "10549", "12149"}
# The text of the correct option has line breaks (broken TeX such as "\nho" for "\rho", or a program), but "the answer
# is" is read to the end of its line only.
TEXT_HAS_LINES = {"4356", "10095", "10442", "10544", "11610", "11689", "12032"}
# Their options were split at commas, so no option is correct and the answer is a text: see the test below.
SPLIT = {"movie_recommendation-163", "ruin_names-99", "ruin_names-144"}


@cache
def questions(name: str) -> tuple[Question, ...]:
    """Every question of a benchmark."""
    return BENCHMARKS[name].load(BENCH / f"{FILES[name]}.jsonl.gz")


def others(name: str, count: int) -> list[tuple[Question, Question]]:
    """Pairs of questions of one category whose answers differ, drawn with a fixed seed."""
    by_category = defaultdict(list)
    for question in questions(name):
        by_category[question.category].append(question)
    rng = random.Random(20_240_607)
    pairs: list[tuple[Question, Question]] = []
    while len(pairs) < count:
        question = rng.choice(questions(name))
        other = rng.choice(by_category[question.category])
        if question.id not in SPLIT and not alike(question.reference or "", other.reference or ""):
            pairs.append((question, other))
    return pairs


def alike(one: str, other: str) -> bool:
    """Whether two answers are the same text or the same plain number, without using a grader."""

    def squeezed(answer: str) -> str:
        for ignored in (" ", "\\!", "\\,", "{,}", "\\$", "\\%", "^\\circ", "^{\\circ}", "$"):
            answer = answer.replace(ignored, "")
        return answer.replace("dfrac", "frac").replace("tfrac", "frac").removeprefix("x=")

    try:
        return float(squeezed(one)) == float(squeezed(other))
    except ValueError:
        return squeezed(one) == squeezed(other)


def correct_reply(benchmark: Benchmark, question: Question) -> str:
    """The correct answer as a model would write it."""
    reference = question.reference or ""
    if benchmark.name == "math":
        return f"<think>\nLet me see.\n</think>\n\nIt follows that $\\boxed{{{reference}}}$."
    if benchmark.name == "mmlu-pro":
        return f"<think>\nLet me see.\n</think>\n\nThe answer is ({reference})."
    return f"<think>\nLet me see.\n</think>\n\nThe answer is {reference}."


@pytest.mark.parametrize("name", SIZES)
def test_every_reference_answer_is_correct(name: str) -> None:
    """Every question is loaded, and its reference answer, written as a model would, is graded correct."""
    benchmark = BENCHMARKS[name]
    asked = questions(name)
    assert len(asked) == SIZES[name]
    assert [one.id for one in asked if not benchmark.grade(one, correct_reply(benchmark, one))] == []


def test_every_math_answer_is_correct_in_other_notations(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every answer of MATH is graded correct in at least six other notations.

    A verdict depends only on the reference and the text, so the 2,047 distinct answers stand for all 5,000 questions.
    """
    # Many texts contain the same formula, whose comparison is the slow part: it is compared once.
    monkeypatch.setattr(equivalence, "ask_algebra", cache(equivalence.ask_algebra))
    benchmark = BENCHMARKS["math"]
    distinct = {question.reference: question for question in questions("math")}
    assert len(distinct) == 2_047
    wrong = []
    for reference, question in distinct.items():
        replies = rewritings.mathematics(reference or "")
        assert len(replies) >= 6
        wrong += [(reference, reply) for reply in replies if benchmark.grade(question, reply) is not True]
    assert wrong == []


def test_every_mmlu_pro_answer_is_correct_by_letter_and_by_text() -> None:
    """Every answer of MMLU-Pro is correct by letter in seven ways and by text in two, except for twelve texts."""
    benchmark = BENCHMARKS["mmlu-pro"]
    wrong = []
    for question in questions("mmlu-pro"):
        letter = question.reference or ""
        *by_letter, alone, in_a_line = rewritings.option(letter, question.options["ABCDEFGHIJ".index(letter)])
        replies = by_letter if question.id in TEXT_IS_A_LABEL else [*by_letter, alone]
        if question.id not in TEXT_IS_A_LABEL | TEXT_HAS_LINES:
            replies.append(in_a_line)
        wrong += [(question.id, reply) for reply in replies if benchmark.grade(question, reply) is not True]
    assert wrong == []


def test_every_bbh_answer_is_correct_in_other_forms() -> None:
    """Every answer of BBH is correct in at least seven other forms, in every task."""
    benchmark = BENCHMARKS["bbh"]
    wrong = []
    for question in questions("bbh"):
        replies = rewritings.bbh(TASKS[question.category], question.reference or "", question.prompt)
        assert len(replies) >= 7
        wrong += [(question.id, reply) for reply in replies if benchmark.grade(question, reply) is not True]
    assert wrong == []


@pytest.mark.parametrize("name", SIZES)
def test_the_answer_to_another_question_is_wrong(name: str) -> None:
    """400 answers to other questions of the same category are graded wrong, never ungraded.

    Pairs with the same text or the same plain number are not drawn, nor are the three questions with split options.
    """
    benchmark = BENCHMARKS[name]
    verdicts = [
        (question.id, question.reference, other.reference, verdict)
        for question, other in others(name, 400)
        if (verdict := benchmark.grade(question, correct_reply(benchmark, other))) is not False
    ]
    assert verdicts == []


def test_the_text_of_another_option_is_wrong() -> None:
    """The text of a wrong option is never graded correct, for 1,000 questions of MMLU-Pro."""
    benchmark = BENCHMARKS["mmlu-pro"]
    rng = random.Random(3)
    asked = [question for question in questions("mmlu-pro") if question.id not in TEXT_IS_A_LABEL]
    for question in rng.sample(asked, 1_000):
        right = question.options["ABCDEFGHIJ".index(question.reference or "")]
        wrong = rng.choice([text for text in question.options if text.split() != right.split()])
        letter = "ABCDEFGHIJ"[question.options.index(wrong)]
        if wrong.strip("(). ").upper() != question.reference:
            assert benchmark.grade(question, f"The answer is {wrong}") is not True, (question.id, letter, wrong)


def test_a_letter_cannot_be_graded_where_options_were_split() -> None:
    """Three questions of BBH have a text as their answer and no correct option, so a letter cannot be graded."""
    split = [
        question
        for question in questions("bbh")
        if TASKS[question.category] is AnswerKind.OPTION and len(question.reference or "") != 3
    ]
    assert sorted(question.reference or "" for question in split) == [
        "Monsters, Inc",
        "dearth, wind, & fire",
        "rita, sue and bob poo",
    ]
    assert {question.id for question in split} == SPLIT
    assert [BENCHMARKS["bbh"].grade(question, "The answer is (A).") for question in split] == [None] * 3


def test_the_letter_counts_where_the_index_disagrees() -> None:
    """In one question of MMLU-Pro the letter and the index name different options: the letter is the answer."""
    (question,) = [question for question in questions("mmlu-pro") if question.id == "3983"]
    assert question.reference == "C"
    assert question.options[2] == "N—H"
