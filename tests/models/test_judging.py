"""Judges: usable marks make a loss, and everything else leaves it unknown."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from bpac.errors import BpacError, NoVerdict, Refused, SettingsError, Unavailable
from bpac.losses import mark_loss
from bpac.models.client import ModelClient
from bpac.models.judging import Judge
from bpac.testing import SILENCE, Reply, Request, Script, ScriptedServer
from tests.gateway.configured import wait_for

DRAFT, EXPERT = "the draft's words", "the expert's words"


def judged(
    script: Script, what: str = "loss", client: dict[str, Any] | None = None, **settings: Any
) -> tuple[Any, ScriptedServer]:
    """The loss, or the marks, that a judge with that script gives, and its server. No task may be left over."""

    async def run(base_url: str) -> Any:
        async with ModelClient(base_url, "judge", **{"backoff": 0.01} | (client or {})) as model:
            got = await getattr(Judge(model, **settings), what)("Why?", DRAFT, EXPERT)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return got

    with ScriptedServer(script) as server:
        return asyncio.run(run(server.base_url)), server


def of_draft(request: Request) -> bool:
    """Whether the request is about the draft."""
    return DRAFT in request.question


def marking(draft: Reply | str, expert: Reply | str = "9") -> Script:
    """A judge that always gives the same mark to each answer."""

    def script(request: Request) -> Reply:
        said = draft if of_draft(request) else expert
        return Reply(said) if isinstance(said, str) else said

    return script


def test_marks_make_the_loss() -> None:
    """Both answers are marked, each by itself, with the question, and the marks make the loss."""
    loss, server = judged(marking("5", "9"))
    assert loss == mark_loss(5.0, 9.0)
    assert len(server.requests) == 2
    assert sorted(of_draft(request) for request in server.requests) == [False, True]
    assert all("Why?" in request.question for request in server.requests)
    assert judged(marking("5", "9"), "marks")[0] == (5.0, 9.0)


def test_both_answers_are_marked_with_the_same_prompt() -> None:
    """It differs in nothing but the answer; each vote has a code of its own."""
    _, server = judged(marking("5", "9"), votes=2)
    prompts = {DRAFT: set(), EXPERT: set()}  # type: dict[str, set[str]]
    for request in server.requests:
        answer = DRAFT if of_draft(request) else EXPERT
        prompts[answer].add(str(request.body["messages"]).replace(answer, "…"))
    assert prompts[DRAFT] == prompts[EXPERT]
    assert len(prompts[DRAFT]) == 2


def test_a_repeated_request_has_another_code() -> None:
    """A deterministic judge would otherwise give the same unusable reply again."""
    _, server = judged(marking("what?"), attempts=3)
    asked = {str(request.body["messages"]) for request in server.requests if of_draft(request)}
    assert len(asked) == 3


@pytest.mark.parametrize("said", ["8/10", " 8 ", "**8**", "Mark: 8", "<think>7? 8.</think>8"])
def test_a_mark_may_come_with_reasoning_and_markup(said: str) -> None:
    """If it is clear which mark is meant."""
    assert judged(marking(said), "marks")[0] == (8.0, 9.0)


@pytest.mark.parametrize("said", ["A fine answer, on the whole.", "", "11", "0", "8 or 9, 8/10 or 9/10"])
def test_a_reply_without_a_mark_is_requested_again(said: str) -> None:
    """As often as allowed; without a mark in the end the loss is unknown."""
    loss, server = judged(marking(said), attempts=3)
    assert loss is None
    assert sum(of_draft(request) for request in server.requests) == 3
    with pytest.raises(NoVerdict):
        judged(marking(said), "marks", attempts=1)

    def script(request: Request) -> Reply:
        asked = sum(of_draft(seen) for seen in server.requests)
        return Reply("9" if not of_draft(request) else said if asked < 3 else "8")

    with ScriptedServer(script) as server:

        async def run() -> tuple[float, float]:
            async with ModelClient(server.base_url, "judge") as model:
                return await Judge(model, attempts=3).marks("Why?", DRAFT, EXPERT)

        assert asyncio.run(run()) == (8.0, 9.0)
        assert sum(of_draft(request) for request in server.requests) == 3


@pytest.mark.parametrize(
    ("failure", "error", "requests"),
    [
        (Reply("broken", status=500), Unavailable, 2),
        (Reply("no", status=401), Refused, 1),
        (Reply(raw=b"<html>"), Unavailable, 2),
        (Reply(cut=0), Unavailable, 2),
    ],
)
def test_a_judge_that_fails_leaves_the_loss_unknown(failure: Reply, error: type[BpacError], requests: int) -> None:
    """After the client's own repetitions and no others."""
    loss, server = judged(marking(failure), client={"retries": 1})
    assert loss is None
    assert sum(of_draft(request) for request in server.requests) == requests
    with pytest.raises(error):
        judged(marking(failure), "marks", client={"retries": 1})


@pytest.mark.parametrize("what", ["loss", "marks"])
def test_a_silent_judge_leaves_the_loss_unknown(what: str) -> None:
    """After the judge's timeout, whatever the client's, and the connection is closed."""
    if what == "loss":
        assert judged(marking(SILENCE), timeout=0.2)[0] is None
    else:
        with pytest.raises(Unavailable, match=r"judge at http.* did not judge within 0\.2 s"):
            judged(marking(SILENCE), "marks", timeout=0.2)


def test_votes_are_averaged() -> None:
    """Each answer is marked as often as configured, and the loss follows from the means."""
    said = iter(["4", "5", "6"])
    marks, server = judged(lambda request: Reply(next(said) if of_draft(request) else "9"), "marks", votes=3)
    assert marks == (5.0, 9.0)
    assert len(server.requests) == 6


def test_a_missing_vote_leaves_the_loss_unknown() -> None:
    """Two of three marks are not enough; the votes under way are cancelled."""
    said = iter(["4", "what?", "6"])

    def script(request: Request) -> Reply:
        return Reply(next(said)) if of_draft(request) else SILENCE

    assert judged(script, votes=3, attempts=1)[0] is None


def test_a_cancelled_judgement_has_no_loss() -> None:
    """And leaves no task or connection behind."""

    async def run(server: ScriptedServer) -> None:
        async with ModelClient(server.base_url, "judge") as model:
            task = asyncio.ensure_future(Judge(model).loss("Why?", DRAFT, EXPERT))
            await asyncio.to_thread(wait_for, lambda: len(server.requests) == 2)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert asyncio.all_tasks() == {asyncio.current_task()}

    with ScriptedServer(SILENCE) as server:
        asyncio.run(run(server))


@pytest.mark.parametrize(
    "wrong", [lambda c: Judge(c, votes=0), lambda c: Judge(c, attempts=0), lambda c: Judge(c, timeout=0)]
)
def test_a_judge_without_votes_attempts_or_time_is_refused(wrong: Callable[[ModelClient], Judge]) -> None:
    """When it is made."""
    with pytest.raises(SettingsError):
        wrong(ModelClient("http://127.0.0.1", "judge"))
