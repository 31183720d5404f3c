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
    """The answer by another way than the generator's."""
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
        brackets, rounds = text.removeprefix("depth of "), 0
        while brackets:
            # Peel the outermost layer of every group; as many peels as it is deep.
            brackets, rounds = _peeled(brackets), rounds + 1
        return str(rounds)
    if kind == "truth":
        words = {"T": "True", "F": "False", "&": " and ", "|": " or ", "!": " not "}
        return str(eval("".join(words.get(sign, sign) for sign in text.removeprefix("value of ")).strip()))[0]
    word = text.split(maxsplit=1)[1]
    return {
        "reversal": "".join(reversed(word)),
        "sorting": "".join(sorted(word)),
        "letters": "".join(re.findall(r"([a-z])(?: |$)", word.removeprefix("letters: "))),
    }[kind]


def _peeled(brackets: str) -> str:
    kept, depth = "", 0
    for bracket in brackets:
        depth -= bracket in ")]}"
        kept += bracket if depth > 0 else ""
        depth += bracket in "([{"
    return kept


@given(_any_question())
def test_the_answer_is_right(question: WorkedQuestion) -> None:
    """Every answer agrees with an independent solution."""
    assert question.answer == _solved(question)


@given(_any_question())
def test_steps_are_true(question: WorkedQuestion) -> None:
    """Every equation among the worked steps of a question about numbers holds."""
    if question.kind in ("addition", "subtraction", "multiple", "remainder", "chain"):
        found = re.findall(r"(?<![\d=+*:])([\d+*%-]+)=(\d+)", question.steps)
        assert found
        assert all(eval(left) == int(right) for left, right in found)


@given(_any_question())
def test_questions_fit_the_model(question: WorkedQuestion) -> None:
    """A question with its steps and answer is plain ASCII and has room in a context of 512 tokens."""
    written = question.text + question.steps + question.answer
    assert written.isascii()
    assert len(written) < 400
    assert question.answer
    assert KINDS[question.kind].easiest <= question.difficulty <= KINDS[question.kind].hardest


def test_training_never_sees_a_fresh_question() -> None:
    """None of 20,000 training questions belongs to the fixed tenth, and every kind and size is among them."""
    questions = list(islice(training_questions(seed=1), 20_000))
    assert not any(is_held_out(question.text) for question in questions)
    sizes = {(question.kind, question.difficulty) for question in questions}
    assert sizes == {(name, size) for name, kind in KINDS.items() for size in kind.sizes}


def test_fresh_questions_are_fresh_and_different() -> None:
    """All belong to the fixed tenth, no two are the same, and the same seed gives them again."""
    questions = held_out_questions(2_000, seed=3)
    assert all(is_held_out(question.text) for question in questions)
    assert len({question.text for question in questions}) == 2_000
    assert questions == held_out_questions(2_000, seed=3)
    assert {question.kind for question in questions} == set(KINDS)


def test_a_tenth_is_fresh() -> None:
    """About one in ten of all questions is set aside, whatever their kind."""
    rng = Random(5)
    for kind in KINDS.values():
        texts = {kind.ask(kind.hardest, rng).text for _ in range(3_000)}
        assert 0.07 < sum(map(is_held_out, texts)) / len(texts) < 0.13


def test_no_sum_is_asked_both_ways_round() -> None:
    """The larger number comes first, so a held-out question is never a trained one turned round."""
    for kind in ("addition", "subtraction"):
        for question in held_out_questions(200, seed=4, kind=kind):
            first, second = map(int, re.findall(r"\d+", question.text))
            assert first >= second


def test_an_unknown_kind() -> None:
    """It is refused, and the kinds there are are named."""
    with pytest.raises(InputError, match="no kind of question called 'poetry'; there are addition"):
        held_out_questions(1, seed=1, kind="poetry")


def test_more_questions_than_there_are() -> None:
    """Asking for more held-out questions than exist is an error, not a search without end."""
    tiny = KINDS["depth"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(KINDS, "depth", QuestionKind(tiny.ask, 3, 3))
        with pytest.raises(InputError, match="there are not 500 held-out questions of kind depth"):
            held_out_questions(500, seed=1, kind="depth")
