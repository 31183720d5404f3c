"""Chain of Draft and NoThinking on the model in this package, which was trained on both prompts."""

import json
from pathlib import Path

import pytest

from bpac.errors import InputError
from bpac.local.answer_modes import MODES
from bpac.local.prompting import PromptingRow, collect_modes, measure_prompting
from bpac.local.questions import held_out_questions
from bpac.local.server import LocalServer
from tests.collecting.pairs import bpac
from tests.local.chat import post
from tests.once import made_once

QUESTIONS = 150


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> tuple[Path, dict[str, PromptingRow]]:
    """The folder of the measurement, and the measured rows by method."""
    return made_once("prompting", measure, tmp_path_factory, worker_id)


def measure(folder: Path) -> tuple[Path, dict[str, PromptingRow]]:
    """Measure in a new folder."""
    return folder, {row.method: row for row in measure_prompting(folder, QUESTIONS, seed=40)}


@pytest.fixture
def rows(measured: tuple[Path, dict[str, PromptingRow]]) -> dict[str, PromptingRow]:
    """The measured rows by method."""
    return measured[1]


def test_every_answer_of_every_method_is_graded(rows: dict[str, PromptingRow]) -> None:
    """There are four rows on the same questions, and the model ends its answers in every mode."""
    assert list(rows) == ["Thinking (the expert)", "Direct answers (the draft)", "Chain of Draft", "NoThinking"]
    assert {row.questions for row in rows.values()} == {QUESTIONS}
    assert len({row.expert_right for row in rows.values()}) == 1
    assert all(row.unknown <= QUESTIONS / 100 for row in rows.values())


def figures(row: PromptingRow) -> tuple[float, float, float]:
    """The accuracy, the loss and the token ratio of a row, which are all known."""
    assert row.accuracy is not None
    assert row.loss is not None
    assert row.token_ratio is not None
    return row.accuracy, row.loss, row.token_ratio


def test_chain_of_draft_lies_between_direct_answers_and_thinking(rows: dict[str, PromptingRow]) -> None:
    """Its accuracy, its loss and its number of tokens are between those of the other two."""
    thinking, direct, draft, _ = map(figures, rows.values())
    assert direct[0] + 0.03 < draft[0] < thinking[0]
    assert 0.0 < draft[1] < direct[1]
    assert 1.5 * direct[2] < draft[2] < 0.7


def test_nothinking_answers_at_once_and_about_as_well_as_direct_answers(rows: dict[str, PromptingRow]) -> None:
    """NoThinking needs as few tokens as direct answers and knows most of what they know."""
    _, direct, _, nothinking = rows.values()
    assert nothinking.tokens == pytest.approx(direct.tokens, rel=0.1)
    assert nothinking.accuracy == pytest.approx(direct.accuracy, abs=0.1)


def test_the_expert_is_compared_with_itself(rows: dict[str, PromptingRow]) -> None:
    """The expert's row has no loss and all of its tokens."""
    expert = rows["Thinking (the expert)"]
    assert (expert.loss, expert.token_ratio) == (0.0, 1.0)
    assert expert.right == expert.expert_right


def test_a_finished_measurement_sends_no_requests(measured: tuple[Path, dict[str, PromptingRow]]) -> None:
    """The same folder gives the same rows again, also for fewer questions, without any request."""
    folder, rows = measured
    assert [*rows.values()] == measure_prompting(folder, QUESTIONS, seed=40)
    fewer = collect_modes(folder, {"chain-of-draft": 10}, seed=40)
    assert (fewer.asked, len(fewer.grades["chain-of-draft"])) == (0, 10)


def test_a_measurement_needs_questions(tmp_path: Path) -> None:
    """No questions is an error."""
    with pytest.raises(InputError, match="questions must be"):
        measure_prompting(tmp_path, 0)


@pytest.mark.parametrize(("method", "least"), [("chain-of-draft", 0.7), ("nothinking", 0.55)])
def test_bpac_collect_measures_the_method(local: LocalServer, tmp_path: Path, method: str, least: float) -> None:
    """``bpac collect --method``, ``bpac grade`` and ``bpac table`` give the accuracy of the method."""
    answers, grades, table = (str(tmp_path / name) for name in ("answers.jsonl", "grades.jsonl", "table.csv"))
    servers = [
        part
        for role in ("draft", "expert")
        for part in (
            f"--{role}-url",
            local.base_url,
            f"--{role}-model",
            local.name,
            f"--{role}-body",
            '{"max_tokens": 400}',
        )
    ]
    collect = ["collect", "--benchmark", "local", "--limit", "60", "--method", method, "--out", answers, *servers]
    for words in (collect, ["grade", answers, "--out", grades], ["table", grades, "--out", table, "--json"]):
        ran = bpac(*words)
        assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert found["draft_accuracy"] >= least
    assert found["draft_tokens"] < 0.7 * found["expert_tokens"]


def test_a_draft_is_returned_as_reasoning(local: LocalServer) -> None:
    """With Chain of Draft the server returns the draft in the field of the reasoning, as it returns full steps."""
    question = held_out_questions(1, seed=41, kind="letters")[0]
    mode = MODES["chain-of-draft"]
    body = {"messages": mode.messages(question.text), **mode.method.request, **mode.body()}
    message = post(f"{local.base_url}/chat/completions", body)[1]["choices"][0]["message"]
    assert (message["reasoning_content"], message["content"]) == (question.draft, question.answer)
