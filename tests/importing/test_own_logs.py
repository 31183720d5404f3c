"""What logs lack: one model only, no pairs, no verdicts; and from there to a table."""

import json
from pathlib import Path
from typing import Any

import pytest

from bpac.answer import Answer
from bpac.cli.program import main
from bpac.collecting.question_files import read_question_file
from bpac.importing.call import LoggedCall
from bpac.importing.pairing import Pairing
from bpac.replay.tables.reading import read_table
from bpac.testing import Reply, Request, ScriptedServer
from tests.cli.running import run_json
from tests.importing import logs
from tests.importing.logs import LARGE, QUESTIONS, SMALL, WRONG


def written(path: Path, *records: dict[str, Any]) -> str:
    """A file of JSON lines."""
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return str(path)


def test_a_log_of_one_model_becomes_a_table_by_asking_the_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Import → collect → grade → table: recorded answers with their scores are kept, only the expert is asked, and own
    questions need no benchmark.
    """
    log, questions = written(tmp_path / "log.jsonl", *logs.openai(SMALL)), str(tmp_path / "q.jsonl.gz")
    assert main(["import", log, "--out", str(tmp_path / "t.csv")]) == 2
    assert "only small-1 (10) answered: say which of the two it is" in capsys.readouterr().err
    report = run_json(capsys, "import", log, "--draft", SMALL, "--questions-out", questions)
    assert (report["rows"], report["unpaired"]) == (0, {"draft": QUESTIONS})
    assert "bpac collect --questions" in report["advice"][0]

    def expert(request: Request) -> Reply:
        assert request.body["messages"][0] == {"role": "system", "content": "Be brief."}
        return Reply(f"The answer is {int(request.question.split()[2]) + 1}.")

    answers, grades, table = (str(tmp_path / name) for name in ("answers.jsonl", "grades.jsonl", "table.csv"))
    assert main(["collect", "--questions", questions, "--out", str(tmp_path / "no.jsonl")]) == 2
    assert "10 of 10 questions have no recorded answer of the expert: give --expert-url" in capsys.readouterr().err
    with ScriptedServer(expert) as server:
        asked = run_json(capsys, "collect", "--questions", questions, "--out", answers,
                         "--expert-url", server.base_url, "--expert-model", LARGE)  # fmt: skip
        assert {request.body["model"] for request in server.requests} == {LARGE}
    assert (asked["asked"], asked["answered"]) == (QUESTIONS, {"draft": QUESTIONS, "expert": QUESTIONS})
    run_json(capsys, "grade", answers, "--out", grades)
    run_json(capsys, "table", grades, "--out", table)
    made = read_table(table)
    assert sorted(zip(made.uncertainty.round(5).tolist(), made.loss.tolist(), strict=True)) == sorted(
        (round(1 - logs.probability(number), 5), float(number in WRONG)) for number in range(QUESTIONS)
    )


def test_own_questions_are_asked_as_they_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Prompts get no instructions; a correct answer decides the loss where there is one, else the expert's answer."""
    questions = written(
        tmp_path / "q.jsonl", {"prompt": "1 + 1?", "reference": "2"}, {"id": "b", "question": "Capital of France?"}
    )
    replies = {("1 + 1?", SMALL): "2", ("1 + 1?", LARGE): "3", ("Capital of France?", SMALL): "Lyon",
               ("Capital of France?", LARGE): "Paris"}  # fmt: skip
    answers, grades = str(tmp_path / "a.jsonl"), tmp_path / "g.jsonl"
    with ScriptedServer(lambda request: Reply(replies[request.question, request.body["model"]])) as server:
        run_json(capsys, "collect", "--questions", questions, "--out", answers, "--draft-url", server.base_url,
                 "--draft-model", SMALL, "--expert-url", server.base_url, "--expert-model", LARGE)  # fmt: skip
        assert all(len(request.body["messages"]) == 1 for request in server.requests)
    assert run_json(capsys, "grade", answers, "--out", str(grades))["known"] == 2
    run_json(capsys, "table", str(grades), "--out", str(tmp_path / "t.csv"))
    assert read_table(tmp_path / "t.csv").loss.tolist() == [0.0, 1.0]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ({"messages": "hi"}, "line 1, field messages: 'hi' is not a list of chat messages"),
        ({"prompt": ""}, "line 1, field prompt: '' is not a string with text"),
        ({"prompt": "a", "recorded": {"judge": {}}}, "line 1, field recorded"),
        ({"prompt": "a", "recorded": {"draft": {"model": "m"}}}, "the answer of the draft cannot be read"),
    ],
)
def test_a_bad_question_is_named(line: dict[str, Any], said: str, tmp_path: Path) -> None:
    """File, line and field are named."""
    with pytest.raises(ValueError, match=said.replace("(", r"\(")):
        read_question_file(Path(written(tmp_path / "q.jsonl", line)))


def test_prompts_of_a_batch_may_come_after_its_answers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Questions have their messages in whatever order the files of the batch API are given."""
    log = written(tmp_path / "log.jsonl", *logs.batch_output(SMALL), *logs.batch_input(SMALL))
    questions = tmp_path / "q.jsonl"
    run_json(capsys, "import", log, "--draft", f"{SMALL}-0101", "--questions-out", str(questions))
    found = read_question_file(questions)
    assert {question.prompt for question in found.questions} == {logs.prompt(n)[1]["content"] for n in range(QUESTIONS)}
    assert found.models["draft"] == {f"{SMALL}-0101": QUESTIONS}


@pytest.mark.parametrize(
    "content", ["", "[]", '{"resourceSpans": []}', '{"error": "down", "request": {"messages": []}}']
)
def test_a_log_without_any_answer_has_no_table(
    content: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command fails and says that the table would be empty; it asks for nothing that could not help."""
    (tmp_path / "log").write_text(content, encoding="utf-8")
    assert main(["import", str(tmp_path / "log"), "--out", str(tmp_path / "t.csv")]) == 1
    assert "the table would be empty" in capsys.readouterr().err


def test_what_cannot_be_used_is_counted_by_its_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Failures, other models, embeddings and prompts that were not stored are counted, each with a place."""
    rows = [*logs.litellm(SMALL), *logs.litellm(LARGE)]
    rows[0] |= {"status": "failure"}
    rows[1] |= {"response": {}}
    rows[2] |= {"call_type": "aembedding"}
    rows[3] |= {"model": "medium-1", "model_group": "medium-1"}
    log = written(tmp_path / "log.jsonl", *rows)
    words = ("--draft", SMALL, "--expert", LARGE, "--out", str(tmp_path / "t.csv"))
    report = run_json(capsys, "import", log, *words)
    assert report["rows"] == QUESTIONS - 4
    assert report["unpaired"] == {"expert": 4}
    assert sorted(report["left_out"].values()) == [1, 1, 1, 1]
    reasons = " ".join(report["left_out"])
    for said in (
        "the request failed",
        "store_prompts_in_spend_logs",
        "not a chat (aembedding)",
        "another model (medium-1)",
    ):
        assert said in reasons
    assert report["examples"]["the request failed"] == f"{log}: row 1"
    # Every call is in the table, without a counterpart, or left out for a reason.
    assert report["calls"] == 2 * report["rows"] + sum(report["unpaired"].values()) + sum(report["left_out"].values())


def test_unknown_verdicts_count_as_losses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A verdict that cannot be found is a loss of 1, as in the gateway, and is reported; it is never a guess."""
    log = tmp_path / "log.csv"
    log.write_text('uncertainty,draft,expert\n0.1,42,42\n0.2,Paris.,"Paris, or else Lyon."\n', encoding="utf-8")
    report = run_json(capsys, "import", str(log), "--out", str(tmp_path / "t.csv"))
    assert report["unknown_losses"] == {"the answers cannot be compared": 1}
    assert "judge" in report["advice"][0]
    assert read_table(tmp_path / "t.csv").loss.tolist() == [0.0, 1.0]
    cut = logs.openai(SMALL) + logs.openai(LARGE)
    cut[1]["response"]["choices"][0]["finish_reason"] = "length"
    report = run_json(capsys, "import", written(tmp_path / "l.jsonl", *cut), "--out", str(tmp_path / "t.csv"))
    assert report["unknown_losses"] == {"an answer was cut off or refused": 1}
    assert read_table(tmp_path / "t.csv").loss.tolist()[1] == 1.0


def test_one_model_with_and_without_thinking_are_two(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where draft and expert have one name, the effort of the request tells them apart."""
    records = [*logs.openai(SMALL), *logs.openai(LARGE)]
    for record, effort in zip(records, ["none"] * QUESTIONS + ["high"] * QUESTIONS, strict=True):
        record["request"] |= {"model": "m", "reasoning_effort": effort}
        record["response"]["model"] = "m"
    report = run_json(capsys, "import", written(tmp_path / "l", *records), "--out", str(tmp_path / "t.csv"))
    assert (report["draft"], report["expert"], report["rows"]) == ("m (effort none)", "m (effort high)", QUESTIONS)


def test_a_stated_confidence_is_a_score_and_no_part_of_the_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where a log has no log-probabilities, what drafts state at their end is the uncertainty."""
    log = tmp_path / "log.csv"
    rows = ['"42\nConfidence: very likely",42', '"41\nConfidence: about even",42']
    log.write_text("draft,expert\n" + "\n".join(rows) + "\n", encoding="utf-8")
    report = run_json(capsys, "import", str(log), "--out", str(tmp_path / "t.csv"))
    made = read_table(tmp_path / "t.csv")
    assert report["score"] == "verbalized_words"
    assert made.uncertainty.tolist() == pytest.approx([0.15, 0.5])
    assert made.loss.tolist() == [0.0, 1.0]


def test_a_log_without_scores_says_what_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No score is made up: all rows are left out, with the reason, and no table is written."""
    log = written(tmp_path / "log.json", *logs.langfuse(SMALL), *logs.langfuse(LARGE))
    assert main(["import", log, "--out", str(tmp_path / "t.csv")]) == 1
    said = capsys.readouterr().err
    assert f"{QUESTIONS} left out: the draft has no score: the log has no log-probabilities" in said
    assert not (tmp_path / "t.csv").exists()


def call(name: str, trace: str = "", asked: str = "") -> LoggedCall:
    """A call with an answer."""
    messages = ({"role": "user", "content": asked},) if asked else ()
    return LoggedCall(name, (name,), Answer("1"), "", trace, messages)


def paired(pairing: Pairing, *calls: tuple[LoggedCall, str]) -> set[tuple[str, str]]:
    """The names of all pairs."""
    found = [pairing.add(one, role) for one, role in calls]
    return {(pair.draft.place, pair.expert.place) for pair in (*found, *pairing.rest()) if pair is not None}


def test_pairs_share_a_trace_and_a_prompt_before_anything_else() -> None:
    """The right counterpart is the one of the same trace, even if another one with the same prompt came first."""
    calls = [(call("d1", "t1", "q"), "draft"), (call("e2", "t2", "q"), "expert"), (call("e1", "t1", "q"), "expert"),
             (call("d2", "t2", "q"), "draft")]  # fmt: skip
    assert paired(Pairing(), *calls) == {("d1", "e1"), ("d2", "e2")}


def test_prompts_that_differ_are_paired_by_a_trace_of_two_only() -> None:
    """A trace with several calls of a model is an agent's: its calls are paired by their prompts, or not at all."""
    two = [(call("d", "t", "q"), "draft"), (call("e", "t", "q, briefly"), "expert")]
    assert paired(Pairing(), *two) == {("d", "e")}
    agent = [*two, (call("d2", "t", "other"), "draft")]
    assert paired(Pairing(), *agent) == set()
    assert paired(Pairing("prompt"), *two) == set()
    assert paired(Pairing("trace"), *two) == {("d", "e")}


def test_calls_with_nothing_in_common_are_no_pair() -> None:
    """Calls without trace and prompt are left alone, and each call is in one pair at most."""
    pairing = Pairing()
    assert paired(pairing, (call("d"), "draft"), (call("e"), "expert")) == set()
    assert {role for role, _ in pairing.unpaired()} == {"draft", "expert"}
    many = [(call("d1", asked="q"), "draft"), (call("d2", asked="q"), "draft"), (call("e", asked="q"), "expert")]
    assert paired(Pairing(), *many) == {("d1", "e")}
