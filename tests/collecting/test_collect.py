import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from bpac.answer import Answer
from bpac.benchmarks.prompting import METHODS
from bpac.collecting.answers_file import FailedRequest
from bpac.collecting.collect import GIVE_UP
from bpac.collecting.requests import RequestTemplate
from bpac.errors import BpacError, SettingsError
from bpac.testing import Reply, Request, ScriptedServer, in_turn
from tests.collecting.pairs import (
    BODY,
    adds,
    collect,
    collection,
    number,
    recorded_answers,
    request_counts,
    role,
    servers,
)


def test_both_models_answer_everything(tmp_path: Path) -> None:
    """Each model is asked each question once, and text, reasoning, tokens and token counts are recorded."""
    with ScriptedServer(adds) as server:
        collected = collect(server, tmp_path, 20)
    assert collected.answered == {"draft": 20, "expert": 20}
    assert collected.failed == {"draft": 0, "expert": 0}
    assert set(request_counts(server).values()) == {1}
    assert (collected.asked, len(request_counts(server))) == (40, 40)
    assert collected.tokens > 40
    kept = {(reply.id, reply.role): reply.outcome for reply in recorded_answers(tmp_path / "answers.jsonl")}
    draft, expert = kept["gsm8k-3", "draft"], kept["gsm8k-3", "expert"]
    assert isinstance(draft, Answer)
    assert isinstance(expert, Answer)
    assert (draft.text, expert.text, expert.reasoning) == (r"So \boxed{7}", r"So \boxed{6}", "two times that")
    assert draft.tokens is not None
    assert len(draft.tokens[0].top) == 1
    assert (expert.tokens, expert.completion_tokens, expert.prompt_tokens) == (None, 5, 7)


def test_requests_follow_their_templates(tmp_path: Path) -> None:
    """The draft is asked with its prompting method and log-probabilities, the expert directly and without them."""
    templates = {
        "draft": RequestTemplate("draft", BODY, METHODS["chain-of-draft"]),
        "expert": RequestTemplate("expert", {"top_k": 20}),
    }
    with ScriptedServer(adds) as server:
        collect(server, tmp_path, 1, templates=templates)
    bodies = {role(request): request.body for request in server.requests}
    assert [message["role"] for message in bodies["draft"]["messages"]] == ["system", "user"]
    assert (bodies["draft"]["logprobs"], bodies["draft"]["top_logprobs"]) == (True, 2)
    assert [message["role"] for message in bodies["expert"]["messages"]] == ["user"]
    assert bodies["expert"]["top_k"] == 20
    assert "logprobs" not in bodies["expert"]


@pytest.mark.parametrize("bound", [1, 3, 8])
def test_concurrency_limits_requests_to_both_models(tmp_path: Path, bound: int) -> None:
    """The largest number of concurrent requests, to both models together, equals the limit."""
    lock, now, most = threading.Lock(), 0, 0

    def slow(request: Request) -> Reply:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        time.sleep(0.02)
        with lock:
            now -= 1
        return adds(request)

    with ScriptedServer(slow) as server:
        collect(server, tmp_path, 15, concurrency=bound)
    assert most == bound


def test_failures_are_recorded_with_their_reasons(tmp_path: Path) -> None:
    """A refusal, a server error and an invalid response are recorded as failures; all other answers are recorded."""
    wrong = {2: Reply("too long", status=400), 5: Reply("on fire", status=500), 7: Reply(raw=b"<html>")}

    def script(request: Request) -> Reply:
        return wrong.get(number(request), adds(request)) if role(request) == "draft" else adds(request)

    with ScriptedServer(script) as server:
        collected = collect(server, tmp_path, 10)
    assert (collected.answered, collected.failed) == ({"draft": 7, "expert": 10}, {"draft": 3, "expert": 0})
    failures = {
        reply.id: reply.outcome.reason
        for reply in recorded_answers(tmp_path / "answers.jsonl")
        if isinstance(reply.outcome, FailedRequest)
    }
    assert failures.keys() == {"gsm8k-2", "gsm8k-5", "gsm8k-7"}
    assert "status 400: too long" in failures["gsm8k-2"]
    assert "status 500: on fire" in failures["gsm8k-5"]
    assert "not JSON" in failures["gsm8k-7"]
    assert sum(collected.reasons.values()) == 3


def test_a_busy_server_is_retried(tmp_path: Path) -> None:
    """Requests that get status 503 or 429 are repeated and then answered."""
    with ScriptedServer(in_turn(Reply("busy", status=503), Reply("busy", status=429), Reply("4"))) as server:
        collected = collection(tmp_path, 1, concurrency=1).run(servers(server, retries=3))
    assert collected.answered == {"draft": 1, "expert": 1}
    assert len(server.requests) == 4


def test_a_second_run_retries_failures_only_on_request(tmp_path: Path) -> None:
    """A second run sends no requests; with ``retry_failed`` it repeats the requests that failed."""

    def script(request: Request) -> Reply:
        return Reply("no", status=400) if number(request) == 1 and not fixed else adds(request)

    fixed = False
    with ScriptedServer(script) as server:
        assert collect(server, tmp_path, 5).failed == {"draft": 1, "expert": 1}
        again = collect(server, tmp_path, 5)
        assert (again.asked, again.failed, again.answered) == (0, {"draft": 1, "expert": 1}, {"draft": 4, "expert": 4})
        assert len(server.requests) == 10
        fixed = True
        tried = collect(server, tmp_path, 5, retry_failed=True)
        assert (tried.asked, tried.failed, tried.answered) == (2, {"draft": 0, "expert": 0}, {"draft": 5, "expert": 5})
    assert {pair for pair, count in request_counts(server).items() if count > 1} == {(1, "draft"), (1, "expert")}


def test_a_longer_run_asks_only_the_new_questions(tmp_path: Path) -> None:
    """A run with more questions asks only the new ones; a run with fewer questions asks none."""
    with ScriptedServer(adds) as server:
        collect(server, tmp_path, 4)
        assert collect(server, tmp_path, 7).asked == 6
        assert collect(server, tmp_path, 2).asked == 0
    assert set(request_counts(server).values()) == {1}


@pytest.mark.parametrize(
    ("template", "named"),
    [
        (RequestTemplate("draft-2", BODY), 'draft.model was "draft", now "draft-2"'),
        (RequestTemplate("draft", {**BODY, "temperature": 1.0}), "draft.body.temperature was null, now 1.0"),
        (RequestTemplate("draft", BODY, METHODS["nothinking"]), 'draft.method was "direct", now "nothinking"'),
    ],
)
def test_other_settings_are_refused(tmp_path: Path, template: RequestTemplate, named: str) -> None:
    """A run with another model, sampling or method cannot continue a file; the error names the difference."""
    with ScriptedServer(adds) as server:
        collect(server, tmp_path, 2)
        before = (tmp_path / "answers.jsonl").read_bytes()
        with pytest.raises(SettingsError, match="started with other settings") as refused:
            collect(server, tmp_path, 3, templates={"draft": template, "expert": RequestTemplate("expert")})
        assert named in str(refused.value)
        assert len(server.requests) == 4
    assert (tmp_path / "answers.jsonl").read_bytes() == before


def test_a_changed_question_is_refused(tmp_path: Path) -> None:
    """A question that changed but kept its id is detected before any request is sent."""
    with ScriptedServer(adds) as server:
        first = collection(tmp_path, 2)
        first.run(servers(server))
        path = tmp_path / "sums.jsonl"
        path.write_text(path.read_text(encoding="utf-8").replace("1 + 1", "1 + 2"), encoding="utf-8")
        questions = first.benchmark.load(path)
        with pytest.raises(SettingsError, match="question 'gsm8k-1' or its prompt has changed"):
            replace(first, questions=questions).run(servers(server))
        assert len(server.requests) == 4


def test_a_run_stops_after_many_failures_in_a_row(tmp_path: Path) -> None:
    """The failures are recorded, and can be retried later."""
    with ScriptedServer(Reply("wrong key", status=401)) as server:
        with pytest.raises(BpacError, match=r"failed 50 times in a row.*wrong key"):
            collect(server, tmp_path, 200)
        assert GIVE_UP <= len(server.requests) < 3 * GIVE_UP
    with ScriptedServer(adds) as server:
        assert collect(server, tmp_path, 200, retry_failed=True).answered == {"draft": 200, "expert": 200}
