"""The graders on every question of the published benchmarks."""

import random
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

from bpac.benchmarks.benchmark import Benchmark, Question
from bpac.benchmarks.registry import BENCHMARKS
from bpac.grading.choices.bbh import TASKS, AnswerKind
from tests.grading import rewritings

BENCH = Path(__file__).parents[2].parent / "shared" / "bench"
pytestmark = pytest.mark.skipif(not BENCH.is_dir(), reason="the benchmarks' files are not beside the project")

FILES = {"math": "math_test", "mmlu-pro": "mmlu_pro_test", "bbh": "bbh"}
SIZES = {"math": 5_000, "mmlu-pro": 12_032, "bbh": 6_511}

# The text of the right option is the label of another one ("Option B", "E", "(a)", "c", "b"): said alone, it means
# that other option.
TEXT_IS_A_LABEL = {"293", "8057", "10400", "10549", "12149"}
# The text of the right option has line breaks (broken TeX such as "\nho" for "\rho", or a programme); "the answer is"
# is read to the end of its line.
TEXT_HAS_LINES = {"4356", "10095", "10442", "10544", "11610", "11689", "12032"}
# Their options were torn apart at commas, so that none is right and the answer is a text: see the test below.
TORN = {"movie_recommendation-163", "ruin_names-99", "ruin_names-144"}


@cache
def questions(name: str) -> tuple[Question, ...]:
    """Every question of a benchmark."""
    return BENCHMARKS[name].load(BENCH / f"{FILES[name]}.jsonl.gz")


def others(name: str, count: int) -> list[tuple[Question, Question]]:
    """Pairs of different questions of one category, drawn with a seed."""
    by_category = defaultdict(list)
    for question in questions(name):
        by_category[question.category].append(question)
    draw = random.Random(20_240_607)
    pairs: list[tuple[Question, Question]] = []
    while len(pairs) < count:
        question = draw.choice(questions(name))
        other = draw.choice(by_category[question.category])
        if question.id not in TORN and not alike(question.reference or "", other.reference or ""):
            pairs.append((question, other))
    return pairs


def alike(one: str, other: str) -> bool:
    """Whether two answers are the same text or the same plain number, without any grader's help."""

    def squeezed(answer: str) -> str:
        for idle in (" ", "\\!", "\\,", "{,}", "\\$", "\\%", "^\\circ", "^{\\circ}", "$"):
            answer = answer.replace(idle, "")
        return answer.replace("dfrac", "frac").replace("tfrac", "frac").removeprefix("x=")

    try:
        return float(squeezed(one)) == float(squeezed(other))
    except ValueError:
        return squeezed(one) == squeezed(other)


def wrapped(benchmark: Benchmark, question: Question) -> str:
    """The right answer as a model says it."""
    reference = question.reference or ""
    if benchmark.name == "math":
        return f"<think>\nLet me see.\n</think>\n\nIt follows that $\\boxed{{{reference}}}$."
    if benchmark.name == "mmlu-pro":
        return f"<think>\nLet me see.\n</think>\n\nThe answer is ({reference})."
    return f"<think>\nLet me see.\n</think>\n\nThe answer is {reference}."


@pytest.mark.parametrize("name", SIZES)
def test_every_answer_equals_itself(name: str) -> None:
    """Every question is loaded, and its reference answer, said as a model says it, is right."""
    benchmark = BENCHMARKS[name]
    assert len(questions(name)) == SIZES[name]
    wrong = [question.id for question in questions(name) if not benchmark.grade(question, wrapped(benchmark, question))]
    assert wrong == []


def test_mathematics_in_other_words() -> None:
    """Every answer of MATH is right in at least six other notations.

    A verdict depends on the reference and the text only, so the 2,047 distinct answers stand for all 5,000 questions.
    """
    benchmark = BENCHMARKS["math"]
    distinct = {question.reference: question for question in questions("math")}
    assert len(distinct) == 2_047
    wrong = []
    for reference, question in distinct.items():
        replies = rewritings.mathematics(reference or "")
        assert len(replies) >= 6
        wrong += [(reference, reply) for reply in replies if benchmark.grade(question, reply) is not True]
    assert wrong == []


def test_options_in_other_words() -> None:
    """Every answer of MMLU-Pro is right by letter in seven ways and by its text in two, but for twelve texts."""
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


def test_bbh_in_other_words() -> None:
    """Every answer of BBH is right in at least seven other forms, whatever its task."""
    benchmark = BENCHMARKS["bbh"]
    wrong = []
    for question in questions("bbh"):
        replies = rewritings.bbh(TASKS[question.category], question.reference or "", question.prompt)
        assert len(replies) >= 7
        wrong += [(question.id, reply) for reply in replies if benchmark.grade(question, reply) is not True]
    assert wrong == []


@pytest.mark.parametrize("name", SIZES)
def test_another_questions_answer_is_wrong(name: str) -> None:
    """1,000 answers from other questions of the same category are wrong, and never "could not be graded".

    Pairs with the same text or the same plain number are not drawn, nor are the three questions with torn options.
    """
    benchmark = BENCHMARKS[name]
    verdicts = [
        (question.id, question.reference, other.reference, verdict)
        for question, other in others(name, 1_000)
        if (verdict := benchmark.grade(question, wrapped(benchmark, other))) is not False
    ]
    assert verdicts == []


def test_the_text_of_another_option_is_wrong() -> None:
    """The text of a wrong option, said alone, is never right, for 1,000 questions of MMLU-Pro."""
    benchmark = BENCHMARKS["mmlu-pro"]
    draw = random.Random(3)
    asked = [question for question in questions("mmlu-pro") if question.id not in TEXT_IS_A_LABEL]
    for question in draw.sample(asked, 1_000):
        right = question.options["ABCDEFGHIJ".index(question.reference or "")]
        wrong = draw.choice([text for text in question.options if text.split() != right.split()])
        letter = "ABCDEFGHIJ"[question.options.index(wrong)]
        if wrong.strip("(). ").upper() != question.reference:
            assert benchmark.grade(question, f"The answer is {wrong}") is not True, (question.id, letter, wrong)


def test_options_torn_at_their_commas() -> None:
    """Three questions of BBH have a text for an answer and no option that is right: a letter cannot be graded."""
    torn = [
        question
        for question in questions("bbh")
        if TASKS[question.category] is AnswerKind.OPTION and len(question.reference or "") != 3
    ]
    assert sorted(question.reference or "" for question in torn) == [
        "Monsters, Inc",
        "dearth, wind, & fire",
        "rita, sue and bob poo",
    ]
    assert {question.id for question in torn} == TORN
    assert [BENCHMARKS["bbh"].grade(question, "The answer is (A).") for question in torn] == [None] * 3


def test_the_letter_counts_where_the_index_disagrees() -> None:
    """One question of MMLU-Pro has an index beside its letter that names another option: the letter is the answer."""
    (question,) = [question for question in questions("mmlu-pro") if question.id == "3983"]
    assert question.reference == "C"
    assert question.options[2] == "N—H"
