import re
from itertools import islice
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpac.errors import InputError
from bpac.local.questions import KINDS, QuestionKind, held_out_questions, is_held_out, training_questions
from bpac.local.worked_question import WorkedQuestion


def _any_question() -> st.SearchStrategy[WorkedQuestion]:
    """A question of any kind, size and seed."""
    kinds = st.sampled_from(list(KINDS.values()))
    return kinds.flatmap(
        lambda kind: st.builds(
            lambda size, seed: kind.ask(size, Random(seed)), st.sampled_from(list(kind.sizes)), st.integers(0, 2**32)
        )
    )


def _solved(question: WorkedQuestion) -> str:
    """The answer by another method than the generator's."""
    text, kind = question.text, question.kind
    if kind in ("addition", "subtraction", "multiple", "remainder"):
        return str(eval(text.replace("mod", "%")))
    if kind == "chain":
        first, *rest = text.removeprefix("last digit: ").split(", ")
        return str(eval("(" * len(rest) + first + "".join(f"{part})" for part in rest)) % 10)
    if kind == "counting":
        _, wanted, _, word = text.split()
        return str(len(re.findall(wanted, word)))
    if kind == "depth":
        brackets, layers = text.removeprefix("depth of "), 0
        while brackets:
            # Remove the outermost layer of every group; the number of layers is the depth.
            brackets, layers = _without_outer_layer(brackets), layers + 1
        return str(layers)
    if kind == "truth":
        words = {"T": "True", "F": "False", "&": " and ", "|": " or ", "!": " not "}
        return str(eval("".join(words.get(sign, sign) for sign in text.removeprefix("value of ")).strip()))[0]
    word = text.split(maxsplit=1)[1]
    return {
        "reversal": "".join(reversed(word)),
        "sorting": "".join(sorted(word)),
        "letters": "".join(re.findall(r"([a-z])(?: |$)", word.removeprefix("letters: "))),
    }[kind]


def _without_outer_layer(brackets: str) -> str:
    kept, depth = "", 0
    for bracket in brackets:
        depth -= bracket in ")]}"
        kept += bracket if depth > 0 else ""
        depth += bracket in "([{"
    return kept


@given(_any_question())
def test_answers_are_correct(question: WorkedQuestion) -> None:
    """Every answer agrees with an independent solution."""
    assert question.answer == _solved(question)


@given(_any_question())
def test_equations_in_the_steps_hold(question: WorkedQuestion) -> None:
    """Every equation in the steps of a question about numbers is true."""
    if question.kind in ("addition", "subtraction", "multiple", "remainder", "chain"):
        found = re.findall(r"(?<![\d=+*:])([\d+*%-]+)=(\d+)", question.steps)
        assert found
        assert all(eval(left) == int(right) for left, right in found)


@given(_any_question())
def test_a_draft_is_shorter_than_the_steps_and_written_with_their_characters(question: WorkedQuestion) -> None:
    """A Chain of Draft is never empty, has fewer characters than the steps, and none that the steps do not have."""
    assert 0 < len(question.draft) < len(question.steps)
    assert set(question.draft) <= set(question.steps) | {";"}


@given(_any_question())
def test_questions_fit_into_the_context(question: WorkedQuestion) -> None:
    """A question with its steps and answer is ASCII and fits into a context of 512 tokens."""
    written = question.text + question.steps + question.answer
    assert written.isascii()
    assert len(written) < 400
    assert question.answer
    assert KINDS[question.kind].easiest <= question.difficulty <= KINDS[question.kind].hardest


def test_training_never_uses_a_held_out_question() -> None:
    """None of 20,000 training questions is held out, and every kind and size is among them."""
    questions = list(islice(training_questions(seed=1), 20_000))
    assert not any(is_held_out(question.text) for question in questions)
    sizes = {(question.kind, question.difficulty) for question in questions}
    assert sizes == {(name, size) for name, kind in KINDS.items() for size in kind.sizes}


def test_held_out_questions_are_distinct_and_depend_only_on_the_seed() -> None:
    """All are held out, no two are the same, and the same seed gives the same questions."""
    questions = held_out_questions(2_000, seed=3)
    assert all(is_held_out(question.text) for question in questions)
    assert len({question.text for question in questions}) == 2_000
    assert questions == held_out_questions(2_000, seed=3)
    assert {question.kind for question in questions} == set(KINDS)


def test_a_tenth_of_every_kind_is_held_out() -> None:
    """About one in ten questions of every kind is held out."""
    rng = Random(5)
    for kind in KINDS.values():
        texts = {kind.ask(kind.hardest, rng).text for _ in range(3_000)}
        assert 0.07 < sum(map(is_held_out, texts)) / len(texts) < 0.13


def test_the_larger_number_comes_first() -> None:
    """So a held-out question is never a training question with its numbers swapped."""
    for kind in ("addition", "subtraction"):
        for question in held_out_questions(200, seed=4, kind=kind):
            first, second = map(int, re.findall(r"\d+", question.text))
            assert first >= second


def test_the_error_for_an_unknown_kind_lists_the_known_ones() -> None:
    """An unknown kind is an error that names the known kinds."""
    with pytest.raises(InputError, match="'poetry' is not a kind of question; use one of addition"):
        held_out_questions(1, seed=1, kind="poetry")


def test_more_questions_than_exist_is_an_error() -> None:
    """Requesting more held-out questions than exist is an error, not an endless search."""
    tiny = KINDS["depth"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(KINDS, "depth", QuestionKind(tiny.ask, 3, 3))
        with pytest.raises(InputError, match="held-out questions of kind depth, not 500"):
            held_out_questions(500, seed=1, kind="depth")
