import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from bpac.answer import Answer
from bpac.benchmarks.benchmark import Benchmark
from bpac.benchmarks.registry import named_benchmark
from bpac.collecting.answers_file import KIND, FailedRequest, Outcome, RecordedAnswer, RecordedQuestion, read_answers
from bpac.collecting.append_only_file import AppendOnlyFile, read_settings
from bpac.collecting.collect import CollectionRun
from bpac.collecting.grade import Grade, GradingRun, read_grades
from bpac.errors import InputError, SettingsError
from bpac.losses import mark_loss
from bpac.models.client import ModelClient
from bpac.models.judging import Judge
from bpac.testing import Reply, Request, ScriptedServer
from tests.collecting.pairs import GSM8K, adds, collect, collection, number, role, servers

MAGPIE = named_benchmark("magpie")
RIGHT = Answer(r"\boxed{2}", completion_tokens=3)


def graded(folder: Path, benchmark: Benchmark = GSM8K, **settings: object) -> list[Grade]:
    """The grades of a folder's answers."""
    grading = GradingRun(benchmark, folder / "answers.jsonl", folder / "grades.jsonl")
    return asyncio.run(replace(grading, **settings).run())  # type: ignore[arg-type]


def only(folder: Path, draft: Outcome, expert: Outcome = RIGHT) -> Grade:
    """The grade of the question 1 + 1 with these two outcomes."""
    with ScriptedServer(Reply("no", status=400)) as server:
        collect(server, folder, 2)
    path = folder / "answers.jsonl"
    with AppendOnlyFile(path, KIND, read_settings(path, KIND)) as file:
        file.append(RecordedAnswer("gsm8k-1", "draft", draft).line())
        file.append(RecordedAnswer("gsm8k-1", "expert", expert).line())
    return graded(folder)[1]


def test_answers_get_verdicts_losses_and_scores(tmp_path: Path) -> None:
    """A grade has both verdicts, the loss, the token counts and the scores of the draft."""
    with ScriptedServer(adds) as server:
        collect(server, tmp_path, 6)
    grades = graded(tmp_path)
    assert [grade.draft_correct for grade in grades] == [True, False] * 3
    assert all(grade.expert_correct and not grade.unknown for grade in grades)
    assert [grade.loss for grade in grades] == [0.0, 1.0] * 3
    assert {(grade.draft_tokens, grade.expert_tokens) for grade in grades} == {(2, 5)}
    assert grades[1].scores["mean_token_probability"] == pytest.approx(0.401)
    assert set(grades[1].scores) == {"mean_token_probability", "perplexity", "entropy"}


def test_a_failure_is_never_a_wrong_answer(tmp_path: Path) -> None:
    """If either model failed, there is no loss and no verdict on that model, and the reason is recorded."""

    def script(request: Request) -> Reply:
        broken = {1: "draft", 2: "expert"}.get(number(request)) == role(request)
        return Reply("too long", status=400) if broken else adds(request)

    with ScriptedServer(script) as server:
        collect(server, tmp_path, 4)
    grades = graded(tmp_path)
    assert [grade.loss for grade in grades] == [0.0, None, None, 1.0]
    assert [grade.unknown for grade in grades] == ["", "the draft failed", "the expert failed", ""]
    assert "status 400: too long" in grades[1].reason
    assert (grades[1].draft_correct, grades[1].expert_correct) == (None, True)
    assert (grades[2].draft_correct, grades[2].expert_correct) == (True, None)


@pytest.mark.parametrize(
    ("draft", "unknown"),
    [
        (FailedRequest("no route to host"), "the draft failed"),
        (Answer("It is", finish_reason="length"), "the draft was cut off"),
        (Answer("I cannot", finish_reason="content_filter"), "the draft was cut off"),
        (Answer("", reasoning="Let me see", finish_reason="length"), "the draft was cut off"),
        (Answer("", finish_reason="stop"), "the draft's answer is empty"),
        (Answer("", reasoning=r"\boxed{2}", finish_reason="stop"), "the draft's answer is empty"),
    ],
)
def test_an_incomplete_answer_is_unknown(tmp_path: Path, draft: Outcome, unknown: str) -> None:
    """An answer that is cut off, filtered or empty is unknown, not wrong."""
    grade = only(tmp_path, draft)
    assert (grade.loss, grade.draft_correct, grade.unknown) == (None, None, unknown)
    assert grade.reason


def test_a_finished_answer_without_a_number_is_wrong(tmp_path: Path) -> None:
    """A model that finished without an answer is wrong."""
    grade = only(tmp_path, Answer("I would rather not say.", completion_tokens=6))
    assert (grade.loss, grade.draft_correct, grade.unknown) == (1.0, False, "")


def test_an_answer_before_the_cut_counts(tmp_path: Path) -> None:
    """A box that was closed before the model was cut off is graded."""
    grade = only(tmp_path, Answer(r"It is \boxed{2}, because", finish_reason="length"))
    assert (grade.loss, grade.draft_correct) == (0.0, True)


def test_an_unfinished_collection_can_be_graded(tmp_path: Path) -> None:
    """Missing answers are unknown at first, and graded once they are there."""
    with ScriptedServer(adds) as server:
        collect(server, tmp_path, 3)
        path = tmp_path / "answers.jsonl"
        # Answers are recorded as they arrive: the one that is cut off may be the draft's or the expert's.
        role = json.loads(path.read_bytes().splitlines()[-1])["role"]
        path.write_bytes(path.read_bytes()[:-1])
        assert {grade.unknown for grade in graded(tmp_path)} >= {f"the {role} was not asked yet"}
        collect(server, tmp_path, 3)
    assert {grade.unknown for grade in graded(tmp_path)} == {""}
    assert len(list(read_grades(tmp_path / "grades.jsonl"))) == 4


def collect_open_answers(folder: Path, count: int) -> None:
    """Collect answers to open questions; the draft's answers are bad for odd numbers."""
    path = folder / "open.jsonl"
    path.write_text("".join(f'{{"instruction": "Write {n} poems"}}\n' for n in range(count)), encoding="utf-8")

    def script(request: Request) -> Reply:
        n = int(request.question.split()[1])
        return Reply(f"poem {n}" if request.body["model"] == "expert" or n % 2 == 0 else f"bad poem {n}")

    with ScriptedServer(script) as server:
        templates = collection(folder, 1).templates
        CollectionRun(MAGPIE, MAGPIE.load(path), templates, folder / "answers.jsonl").run(servers(server))


def judged(folder: Path, server: ScriptedServer, model: str = "judge", **settings: object) -> list[Grade]:
    """The grades by a judge."""

    async def run() -> list[Grade]:
        async with ModelClient(server.base_url, model, retries=0) as client:
            grading = GradingRun(
                MAGPIE,
                folder / "answers.jsonl",
                folder / "grades.jsonl",
                Judge(client, attempts=2),
                judged_by={"model": model},
            )
            return await replace(grading, **settings).run()  # type: ignore[arg-type]

    return asyncio.run(run())


def test_a_judge_marks_open_answers(tmp_path: Path) -> None:
    """The loss follows from the marks; if the judge gives no mark or fails, it is unknown with a reason."""
    collect_open_answers(tmp_path, 6)

    def judge(request: Request) -> Reply:
        if "poem 4" in request.question:
            return Reply("a fine poem")
        if "poem 5" in request.question:
            return Reply("asleep", status=500)
        return Reply("4" if "bad" in request.question else "8")

    with ScriptedServer(judge) as server:
        grades = judged(tmp_path, server)
        assert [grade.loss for grade in grades] == [0.0, mark_loss(4.0, 8.0), 0.0, mark_loss(4.0, 8.0), None, None]
        assert (grades[1].draft_mark, grades[1].expert_mark) == (4.0, 8.0)
        assert {grade.unknown for grade in grades[4:]} == {"the judge gave no mark"}
        assert "a fine poem" in grades[4].reason
        assert "status 500: asleep" in grades[5].reason
        assert all(grade.draft_correct is None for grade in grades)
        asked = len(server.requests)
        # At a server of its own: a request that was cancelled may still arrive at the other one.
        with ScriptedServer(judge) as unused:
            assert judged(tmp_path, unused) == grades
            assert not unused.requests, "what was judged is not judged again"
        judged(tmp_path, server, retry_failed=True)
        assert all("poem 4" in r.question or "poem 5" in r.question for r in server.requests[asked:])
        with pytest.raises(SettingsError, match=r'judge.model was "judge", now "another"'):
            judged(tmp_path, server, model="another")


def test_open_questions_need_a_judge(tmp_path: Path) -> None:
    """Without a judge, grading open questions is an error."""
    collect_open_answers(tmp_path, 1)
    with pytest.raises(InputError, match="magpie are open-ended: a judge must mark"):
        graded(tmp_path, MAGPIE)


def test_grading_needs_only_the_answers_file(tmp_path: Path) -> None:
    """The answers file contains the questions, so their file is not needed to grade it."""
    with ScriptedServer(adds) as server:
        collect(server, tmp_path, 2)
    (tmp_path / "sums.jsonl").unlink()
    found = [line.question for line in read_answers(tmp_path / "answers.jsonl") if isinstance(line, RecordedQuestion)]
    assert [question.reference for question in found] == ["0", "2"]
    assert [grade.loss for grade in graded(tmp_path)] == [0.0, 1.0]
