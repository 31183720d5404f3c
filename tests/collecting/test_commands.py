import json
import time
from pathlib import Path
from typing import Any

import pytest

from bpac.answer import Answer
from bpac.benchmarks.registry import named_benchmark
from bpac.benchmarks.sampling import INSTRUCT
from bpac.cli.program import main
from bpac.testing import Reply, Request, ScriptedServer
from tests.collecting.pairs import adds, arguments, bpac, number, recorded_answers, request_counts, role


def one_object(*words: str) -> dict[str, Any]:
    """The JSON object that a command prints to standard output, and nothing else."""
    ran = bpac(*words, "--json")
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.count("\n") == 1
    report: dict[str, Any] = json.loads(ran.stdout)
    return report


def partly(request: Request) -> Reply:
    """The usual answers, but the draft refuses one question, and the expert is cut off in another."""
    if number(request) == 5 and role(request) == "draft":
        return Reply("too long", status=400)
    if number(request) == 6 and role(request) == "expert":
        return Reply("So it", finish_reason="length")
    return adds(request)


def test_collect_grade_table_and_replay_work_together(tmp_path: Path) -> None:
    """Each command reads the output of the one before; failures are counted and are never a loss."""
    answers, grades, table = (str(tmp_path / name) for name in ("answers.jsonl", "grades.jsonl", "table.csv"))
    with ScriptedServer(partly) as server:
        collected = one_object(*arguments(server, tmp_path, 40))
    assert collected["answered"] == {"draft": 39, "expert": 40}
    assert collected["failed"] == {"draft": 1, "expert": 0}
    assert (collected["asked"], collected["questions"]) == (80, 40)
    assert [("too long" in reason, count) for reason, count in collected["reasons"].items()] == [(True, 1)]

    graded = one_object("grade", answers, "--out", grades)
    assert (graded["questions"], graded["known"]) == (40, 38)
    assert graded["reasons"] == {"the draft failed": 1, "the expert was cut off": 1}

    made = one_object("table", grades, "--out", table)
    assert (made["rows"], made["left_out"]) == (38, 2)
    assert made["reasons"] == {"the draft failed": 1, "the expert was cut off": 1}
    assert made["loss"] == made["draft_accuracy"] == 0.5

    replayed = one_object("replay", table, "--runs", "2", "--epsilon", "0.1")
    assert replayed["steps"] == 38
    assert replayed["token_ratio"] is not None
    assert one_object("replay", table, "--runs", "2", "--score", "uncertainty_entropy")["steps"] == 38


def test_models_behind_other_apis_are_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The draft has log-probabilities where its API has them; a file is not continued through another API."""
    with ScriptedServer(Reply("So \\boxed{2}")) as server:
        words = arguments(server, tmp_path, 2)
        for api in ("responses", "messages"):
            out = str(tmp_path / f"{api}.jsonl")
            apis = ["--draft-api", api, "--expert-api", "messages", "--out", out, "--json"]
            assert main([*words, *apis]) == 0
            assert json.loads(capsys.readouterr().out)["answered"] == {"draft": 2, "expert": 2}
            assert {request.path for request in server.requests} == {f"/v1/{api}", "/v1/messages"}
            drafts = [one.outcome for one in recorded_answers(Path(out)) if one.role == "draft"]
            scored = [isinstance(draft, Answer) and bool(draft.tokens) for draft in drafts]
            assert scored == [api == "responses"] * 2
            server.requests.clear()
        assert main([*words, "--draft-api", "chat", "--out", str(tmp_path / "messages.jsonl"), "--json"]) == 2


def test_text_reports_and_warnings_are_separate(tmp_path: Path) -> None:
    """Without --json, results go to standard output, and what was left out to standard error."""
    answers, grades, table = (str(tmp_path / name) for name in ("answers.jsonl", "grades.jsonl", "table.csv"))
    with ScriptedServer(partly) as server:
        collected = bpac(*arguments(server, tmp_path, 10))
    assert "draft   9 answered, 1 failed" in collected.stdout
    assert "too long" in collected.stderr
    assert "2 not graded" not in bpac("grade", answers, "--out", grades).stdout
    made = bpac("table", grades, "--out", table)
    assert "8 rows" in made.stdout
    assert "AUROC 1.000  mean_token_probability" in made.stdout
    assert "1 left out: the draft failed (question gsm8k-5: " in made.stderr


def test_the_progress_bar_is_on_standard_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bar shows tokens per second and the remaining time, and continues where an earlier run stopped."""
    monkeypatch.delenv("TQDM_DISABLE", raising=False)

    def slowly(request: Request) -> Reply:
        time.sleep(0.02)
        return adds(request)

    with ScriptedServer(slowly) as server:
        ran = bpac(*arguments(server, tmp_path, 60), "--concurrency", "2", "--json")
        again = bpac(*arguments(server, tmp_path, 60), "--json")
    json.loads(ran.stdout)
    assert "collect:   0%|" in ran.stderr
    assert "tokens/s" in ran.stderr
    assert "<00:0" in ran.stderr
    assert "| 120/120 [" in again.stderr
    assert json.loads(again.stdout)["asked"] == 0


def test_open_questions_need_a_judge(tmp_path: Path) -> None:
    """A judge marks the answers to open questions; without one the error names the missing options."""
    path, answers, grades = (tmp_path / name for name in ("open.jsonl", "answers.jsonl", "grades.jsonl"))
    path.write_text('{"instruction": "Write a poem"}\n{"instruction": "Write a song"}\n', encoding="utf-8")

    def script(request: Request) -> Reply:
        if request.body["model"] == "judge":
            return Reply("no comment") if "song" in request.question else Reply("7")
        return Reply("la la")

    with ScriptedServer(script) as server:
        words = arguments(server, tmp_path, 1)
        words[words.index("gsm8k")] = "magpie"
        words[words.index("--file") + 1] = str(path)
        one_object(*words)
        refused = bpac("grade", str(answers), "--out", str(grades))
        assert refused.returncode == 2
        assert "--judge-url and --judge-model" in refused.stderr
        judge = ("--judge-url", server.base_url, "--judge-model", "judge", "--judge-body", '{"temperature": 0}')
        graded = one_object("grade", str(answers), "--out", str(grades), *judge)
        assert (graded["known"], graded["reasons"]) == (1, {"the judge gave no mark": 1})
        marked = [request for request in server.requests if request.body["model"] == "judge"]
        assert all(request.body["temperature"] == 0 for request in marked)
    made = one_object("table", str(grades), "--out", str(tmp_path / "table.csv"))
    assert (made["rows"], made["reasons"], made["draft_accuracy"]) == (1, {"the judge gave no mark": 1}, None)


def test_the_papers_models_are_sampled_as_in_the_paper(tmp_path: Path) -> None:
    """The paper's sampling is the default for its models; ``--limit`` draws the same questions every time."""
    with ScriptedServer(lambda request: Reply("1")) as server:
        words = arguments(server, tmp_path, 30)
        words[words.index("draft")] = INSTRUCT.model
        body = ["--draft-body", '{"temperature": 0.1, "top_logprobs": null}']
        assert main([*words, *body, "--limit", "3"]) == 0
        first = {number(request) for request in server.requests}
        draft = next(request.body for request in server.requests if request.body["model"] == INSTRUCT.model)
        assert (draft["temperature"], draft["top_p"], draft["top_k"], draft["max_tokens"]) == (0.1, 0.8, 20, 16_384)
        assert draft["logprobs"] is True
        assert "top_logprobs" not in draft
        assert main([*words, *body, "--limit", "5"]) == 0
    assert len(first) == 3
    assert first < {number(request) for request in server.requests}
    assert first != {0, 1, 2}
    assert max(request_counts(server).values()) <= 2  # the model's name makes every question the expert's in this count


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (["--draft-body", "{"], "--draft-body is not JSON"),
        (["--draft-body", "[1]"], "must be a JSON object"),
        (["--limit", "0"], "--limit must be at least 1"),
        (["--concurrency", "0"], "concurrency must be at least 1"),
        (["--draft-url", "localhost:8000"], "--draft-url: base_url must start with http"),
        (["--expert-url", "localhost:8000"], "--expert-url: base_url must start with http"),
        (["--draft-key", "env:NO_SUCH_KEY"], "--draft-key: api_key is env:NO_SUCH_KEY, but that environment variable"),
        (["--timeout", "0"], "bpac: timeout must be"),
        (["--file", "none.jsonl"], "none.jsonl: cannot be read"),
    ],
)
def test_wrong_usage_sends_no_requests(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, extra: list[str], message: str
) -> None:
    """A wrong option is named in one line, with exit code 2, before any request is sent."""
    with ScriptedServer(adds) as server:
        assert main([*arguments(server, tmp_path, 2), *extra]) == 2
        assert server.requests == []
    printed = capsys.readouterr().err
    assert message in printed
    assert printed.count("\n") == 1


def test_other_settings_have_exit_code_2(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A run with another model cannot continue a file, and the error names the model."""
    with ScriptedServer(adds) as server:
        words = arguments(server, tmp_path, 2)
        assert main(words) == 0
        words[words.index("expert")] = "expert-2"
        assert main(words) == 2
    assert 'expert.model was "expert", now "expert-2"' in capsys.readouterr().err


def test_the_exit_code_is_1_if_every_request_failed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The failures are recorded, and no table of wrong answers is written."""
    with ScriptedServer(Reply("go away", status=403)) as server:
        assert main(arguments(server, tmp_path, 3)) == 1
    assert "go away" in capsys.readouterr().err
    assert main(["grade", str(tmp_path / "answers.jsonl"), "--out", str(tmp_path / "grades.jsonl")]) == 0
    assert main(["table", str(tmp_path / "grades.jsonl"), "--out", str(tmp_path / "table.csv")]) == 1
    assert "no question has a known loss" in capsys.readouterr().err
    assert not (tmp_path / "table.csv").exists()


@pytest.mark.parametrize("words", [["grade", "{}", "--out", "g"], ["table", "{}", "--out", "t.csv"]])
def test_a_missing_input_file_has_exit_code_2(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, words: list[str]
) -> None:
    """The error names the file."""
    path = tmp_path / "none.jsonl"
    assert main([word.format(path) for word in words]) == 2
    assert f"{path}: cannot be read" in capsys.readouterr().err


def test_input_files_are_not_overwritten(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """An input file as ``--out`` is refused, and the file is not changed."""
    answers, grades = tmp_path / "answers.jsonl", tmp_path / "grades.jsonl"
    with ScriptedServer(adds) as server:
        assert main(arguments(server, tmp_path, 2)) == 0
    assert main(["grade", str(answers), "--out", str(grades)]) == 0
    before = {path: path.read_bytes() for path in (answers, grades)}
    capsys.readouterr()
    assert main(["grade", str(answers), "--out", str(answers)]) == 2
    assert main(["table", str(grades), "--out", str(grades)]) == 2
    assert "--out " + str(grades) + " would overwrite a file that is read" in capsys.readouterr().err
    assert main(["table", str(grades), "--out", str(tmp_path / "t.xlsx")]) == 2
    assert {path: path.read_bytes() for path in before} == before


def test_api_keys_are_not_written_to_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key is sent to its server only, and is not in the answers file."""
    monkeypatch.setenv("DRAFT_KEY", "secret-1")
    with ScriptedServer(adds) as server:
        assert main([*arguments(server, tmp_path, 2), "--draft-key", "env:DRAFT_KEY"]) == 0
        keys = {role(request): request.headers.get("authorization") for request in server.requests}
    assert keys == {"draft": "Bearer secret-1", "expert": None}
    assert b"secret" not in (tmp_path / "answers.jsonl").read_bytes()


def test_the_local_benchmark_needs_no_file(tmp_path: Path) -> None:
    """The questions for the local model can be collected like any other benchmark."""
    with ScriptedServer(Reply("1")) as server:
        words = arguments(server, tmp_path, 1)
        words[words.index("gsm8k")] = "local"
        at = words.index("--file")
        assert main([*words[:at], *words[at + 2 :], "--limit", "2"]) == 0
        assert len(server.requests) == 4
    assert named_benchmark("gsm8k")
