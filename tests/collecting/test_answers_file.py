import math
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bpac.answer import Answer, Token
from bpac.benchmarks.benchmark import Question
from bpac.collecting.answers_file import KIND, FailedRequest, RecordedAnswer, RecordedQuestion, read_answers
from bpac.collecting.append_only_file import AppendOnlyFile
from bpac.errors import TableError

# The file keeps seven digits.
logprobs = st.integers(-100_000, 0).map(lambda number: number / 1000) | st.just(-math.inf)
tops = st.lists(st.tuples(logprobs, st.text()), max_size=3)
tokens = st.builds(
    lambda text, logprob, top: Token(text, logprob, tuple(t[0] for t in top), tuple(t[1] for t in top)),
    st.text(),
    logprobs,
    tops,
)
answers = st.builds(
    Answer,
    text=st.text(),
    reasoning=st.text(),
    tokens=st.none() | st.lists(tokens, max_size=4).map(tuple),
    completion_tokens=st.integers(0, 10**6),
    prompt_tokens=st.none() | st.integers(0, 10**6),
    finish_reason=st.sampled_from(["stop", "length"]),
    tool_calls=st.just(()) | st.just(({"function": {"name": "f", "arguments": "{}"}},)),
)
questions = st.builds(
    RecordedQuestion,
    st.builds(
        Question, st.text(), st.text(), st.none() | st.text(), st.text(), st.lists(st.text(), max_size=3).map(tuple)
    ),
    st.text(),
)
outcomes = answers | st.builds(FailedRequest, st.text())
FIRST = RecordedQuestion(Question("1", "6 · 7?", "42"), "")
entries = questions | st.builds(RecordedAnswer, st.just("1"), st.sampled_from(["draft", "expert"]), outcomes)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(entries, max_size=3))
def test_lines_are_read_as_they_were_written(tmp_path: Path, kept: list[RecordedQuestion | RecordedAnswer]) -> None:
    """Questions, answers with every token, and failures survive writing and reading."""
    path = tmp_path / "a.jsonl"
    path.unlink(missing_ok=True)
    with AppendOnlyFile(path, KIND, {}) as file:
        for one in (FIRST, *kept):
            file.append(one.line())
    assert list(read_answers(path)) == [FIRST, *kept]


def test_a_missing_log_probability_stays_missing(tmp_path: Path) -> None:
    """A token without a log-probability is read as NaN."""
    path = tmp_path / "a.jsonl"
    with AppendOnlyFile(path, KIND, {}) as file:
        file.append(FIRST.line())
        file.append(RecordedAnswer("1", "draft", Answer("a", tokens=(Token("a", math.nan),))).line())
    _, found = read_answers(path)
    assert isinstance(found, RecordedAnswer)
    assert isinstance(found.outcome, Answer)
    assert found.outcome.tokens is not None
    assert math.isnan(found.outcome.tokens[0].logprob)


def test_a_line_that_is_not_an_answer_is_an_error(tmp_path: Path) -> None:
    """The error shows the line."""
    path = tmp_path / "a.jsonl"
    with AppendOnlyFile(path, KIND, {}) as file:
        file.append({"id": "1", "role": "referee", "text": "2"})
    with pytest.raises(TableError, match="referee"):
        list(read_answers(path))


def test_an_answer_without_its_question_is_an_error(tmp_path: Path) -> None:
    """The error names the question that is missing in the file."""
    path = tmp_path / "a.jsonl"
    with AppendOnlyFile(path, KIND, {}) as file:
        file.append(RecordedAnswer("7", "draft", FailedRequest("no")).line())
    with pytest.raises(TableError, match="question '7'"):
        list(read_answers(path))
