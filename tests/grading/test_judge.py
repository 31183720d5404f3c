"""A judge's prompt and what its replies mean."""

import pytest

from bpac.errors import NoVerdict
from bpac.grading.judge import judge_messages, parse_mark


@pytest.mark.parametrize(
    ("reply", "mark"),
    [
        ("7", 7), (" 7 \n", 7), ("7.5", 7.5), ("7.", 7), ("8/10", 8), ("8 / 10", 8), ("8 out of 10", 8),
        ("Score: 8", 8),
        ("**8**", 8), ("**Score:** 8/10", 8), ("[[9]]", 9), ("Rating: 10", 10), ("I would give this a score of 6.", 6),
        ("10/10", 10), ("1", 1), ("Mark: 8. So 8/10.", 8),
    ],
)  # fmt: skip
def test_a_clear_mark_is_read(reply: str, mark: float) -> None:
    """A number alone, out of ten, or named as a mark."""
    assert parse_mark(reply) == mark


@pytest.mark.parametrize(
    "reply",
    ["", " ", "good", "0", "11", "-3", "7 or 8", "Score: 7. Score: 8.", "It has 3 faults.", "8/5", "80%", "8/100",
     "7/10, no, 6/10",
     "Score: 11", "seven", "1e1", "2024-05-07"],
)  # fmt: skip
def test_anything_else_is_no_verdict(reply: str) -> None:
    """Without one clear mark from 1 to 10 there is an error that shows the reply."""
    with pytest.raises(NoVerdict) as caught:
        parse_mark(reply)
    assert repr(reply) in str(caught.value)


def test_a_long_reply_is_shown_in_short() -> None:
    """An essay instead of a mark does not fill the log."""
    with pytest.raises(NoVerdict) as caught:
        parse_mark("well " * 1_000)
    assert len(str(caught.value)) < 400


def test_the_judge_sees_question_answer_and_scale() -> None:
    """The prompt holds both texts as they are, asks for a number from 1 to 10 and for nothing else."""
    system, user = judge_messages("Why is the sky blue?", "Rayleigh {scattering}.")
    assert "from 1 to 10" in system["content"]
    assert "no words" in system["content"]
    assert "Why is the sky blue?" in user["content"]
    assert "Rayleigh {scattering}." in user["content"]
