import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from bpac.answer import Answer
from bpac.benchmarks.methods import METHODS
from bpac.collecting.answers_file import FailedRequest
from bpac.collecting.asking import Recipe
from bpac.collecting.collect import GIVE_UP
from bpac.errors import BpacError, SettingsError
from bpac.testing import Reply, Request, ScriptedServer, in_turn
from tests.collecting.pairs import BODY, adds, asked_of, collect, collection, number, replies, role, servers


def test_both_models_answer_everything(tmp_path: Path) -> None:
    """Each model is asked each question once, and text, thoughts, tokens and counts are kept."""
    with ScriptedServer(adds) as server:
        collected = collect(server, tmp_path, 20)
    assert collected.answered == {"draft": 20, "expert": 20}
    assert collected.failed == {"draft": 0, "expert": 0}
    assert set(asked_of(server).values()) == {1}
    assert (collected.asked, len(asked_of(server))) == (40, 40)
    assert collected.tokens > 40
    kept = {(reply.id, reply.role): reply.outcome for reply in replies(tmp_path / "answers.jsonl")}
    draft, expert = kept["gsm8k-3", "draft"], kept["gsm8k-3", "expert"]
    assert isinstance(draft, Answer)
    assert isinstance(expert, Answer)
    assert (draft.text, expert.text, expert.reasoning) == (r"So \boxed{7}", r"So \boxed{6}", "two times that")
    assert draft.tokens is not None
    assert len(draft.tokens[0].top) == 1
    assert (expert.tokens, expert.completion_tokens, expert.prompt_tokens) == (None, 5, 7)


def test_what_is_sent(tmp_path: Path) -> None:
    """The draft is asked for log-probabilities and by its method; the expert directly and without them."""
    recipes = {"draft": Recipe("draft", BODY, METHODS["chain-of-draft"]), "expert": Recipe("expert", {"top_k": 20})}
    with ScriptedServer(adds) as server:
        collect(server, tmp_path, 1, recipes=recipes)
    bodies = {role(request): request.body for request in server.requests}
    assert [message["role"] for message in bodies["draft"]["messages"]] == ["system", "user"]
    assert (bodies["draft"]["logprobs"], bodies["draft"]["top_logprobs"]) == (True, 2)
    assert [message["role"] for message in bodies["expert"]["messages"]] == ["user"]
    assert bodies["expert"]["top_k"] == 20
    assert "logprobs" not in bodies["expert"]


@pytest.mark.parametrize("bound", [1, 3, 8])
def test_the_bound_on_requests(tmp_path: Path, bound: int) -> None:
    """Never more requests are under way than allowed, at both models together, and as many as allowed are."""
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
    """A refusal, a broken server and nonsense are kept as failures that say why; all other answers come in."""
    wrong = {2: Reply("too long", status=400), 5: Reply("on fire", status=500), 7: Reply(raw=b"<html>")}

    def script(request: Request) -> Reply:
        return wrong.get(number(request), adds(request)) if role(request) == "draft" else adds(request)

    with ScriptedServer(script) as server:
        collected = collect(server, tmp_path, 10)
    assert (collected.answered, collected.failed) == ({"draft": 7, "expert": 10}, {"draft": 3, "expert": 0})
    failures = {
        reply.id: reply.outcome.reason
        for reply in replies(tmp_path / "answers.jsonl")
        if isinstance(reply.outcome, FailedRequest)
    }
    assert failures.keys() == {"gsm8k-2", "gsm8k-5", "gsm8k-7"}
    assert "status 400: too long" in failures["gsm8k-2"]
    assert "status 500: on fire" in failures["gsm8k-5"]
    assert "not JSON" in failures["gsm8k-7"]
    assert sum(collected.reasons.values()) == 3


def test_passing_trouble_is_retried(tmp_path: Path) -> None:
    """A server that is busy for a moment costs a repetition, not an answer."""
    with ScriptedServer(in_turn(Reply("busy", status=503), Reply("busy", status=429), Reply("4"))) as server:
        collected = collection(tmp_path, 1, concurrency=1).run(servers(server, retries=3))
    assert collected.answered == {"draft": 1, "expert": 1}
    assert len(server.requests) == 4


def test_a_second_run_asks_nothing(tmp_path: Path) -> None:
    """What was answered is not asked again, nor what failed, unless one wants failures tried again."""

    def script(request: Request) -> Reply:
        return Reply("no", status=400) if number(request) == 1 and not mended else adds(request)

    mended = False
    with ScriptedServer(script) as server:
        assert collect(server, tmp_path, 5).failed == {"draft": 1, "expert": 1}
        again = collect(server, tmp_path, 5)
        assert (again.asked, again.failed, again.answered) == (0, {"draft": 1, "expert": 1}, {"draft": 4, "expert": 4})
        assert len(server.requests) == 10
        mended = True
        tried = collect(server, tmp_path, 5, retry_failed=True)
        assert (tried.asked, tried.failed, tried.answered) == (2, {"draft": 0, "expert": 0}, {"draft": 5, "expert": 5})
    assert {pair for pair, count in asked_of(server).items() if count > 1} == {(1, "draft"), (1, "expert")}


def test_more_questions_later(tmp_path: Path) -> None:
    """A longer run of the same questions asks only the new ones; a shorter one asks none."""
    with ScriptedServer(adds) as server:
        collect(server, tmp_path, 4)
        assert collect(server, tmp_path, 7).asked == 6
        assert collect(server, tmp_path, 2).asked == 0
    assert set(asked_of(server).values()) == {1}


@pytest.mark.parametrize(
    ("recipe", "named"),
    [
        (Recipe("draft-2", BODY), 'draft.model was "draft", now "draft-2"'),
        (Recipe("draft", {**BODY, "temperature": 1.0}), "draft.body.temperature was null, now 1.0"),
        (Recipe("draft", BODY, METHODS["nothinking"]), 'draft.method was "direct", now "nothinking"'),
    ],
)
def test_other_settings_are_refused(tmp_path: Path, recipe: Recipe, named: str) -> None:
    """Another model, sampling or method may not go on with a file: the error names it, and nobody is asked."""
    with ScriptedServer(adds) as server:
        collect(server, tmp_path, 2)
        before = (tmp_path / "answers.jsonl").read_bytes()
        with pytest.raises(SettingsError, match="begun with other settings") as refused:
            collect(server, tmp_path, 3, recipes={"draft": recipe, "expert": Recipe("expert")})
        assert named in str(refused.value)
        assert len(server.requests) == 4
    assert (tmp_path / "answers.jsonl").read_bytes() == before


def test_another_question_of_the_same_name_is_refused(tmp_path: Path) -> None:
    """A question that changed under its name is noticed before anybody is asked."""
    with ScriptedServer(adds) as server:
        first = collection(tmp_path, 2)
        first.run(servers(server))
        path = tmp_path / "sums.jsonl"
        path.write_text(path.read_text(encoding="utf-8").replace("1 + 1", "1 + 2"), encoding="utf-8")
        questions = first.benchmark.load(path)
        with pytest.raises(SettingsError, match="question 'gsm8k-1' was another one"):
            replace(first, questions=questions).run(servers(server))
        assert len(server.requests) == 4


def test_a_server_that_is_down(tmp_path: Path) -> None:
    """After many failures in a row no more is asked; what failed is kept, and can be tried again."""
    with ScriptedServer(Reply("wrong key", status=401)) as server:
        with pytest.raises(BpacError, match=r"failed 50 times in a row.*wrong key"):
            collect(server, tmp_path, 200)
        assert GIVE_UP <= len(server.requests) < 3 * GIVE_UP
    with ScriptedServer(adds) as server:
        assert collect(server, tmp_path, 200, retry_failed=True).answered == {"draft": 200, "expert": 200}
