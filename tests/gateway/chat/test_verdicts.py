"""Verdicts of the running gateway: drafts that differ are losses, and no answer holds up the others."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from bpac.answer import Answer
from bpac.errors import MissingExtra
from bpac.gateway.chat.experts import grading
from bpac.gateway.chat.experts.grading import GradingOutcome, graded, grader_of
from bpac.gateway.config.file import Config
from bpac.grading.mathematics.exact_equivalence import same_result
from bpac.grading.text.answer_text import Verdict
from bpac.testing import Reply
from tests.gateway.configured import settings
from tests.gateway.raw import post
from tests.gateway.running import ASK, Running, pair

ENDLESS = "\\boxed{9^{9^{9^{9}}}}"


def cut(text: str) -> Reply:
    """An answer that ran out of tokens."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "length"}
    return Reply(raw=json.dumps({"choices": [choice], "usage": {"completion_tokens": 3}}).encode())


@pytest.mark.parametrize(
    ("draft", "expert"),
    [
        ("\\boxed{St. Louis}", "\\boxed{St. Petersburg}"),
        ("The answer is George W. Bush.", "The answer is George W. Carver."),
        ("The answer is:\n1. Paris\n2. Rome", "The answer is:\n1. Paris\n2. Oslo"),
        ("Here is the answer:\n```\na = 1\n```", "Here is the answer:\n```\na = 2\n```"),
    ],
)
def test_drafts_that_differ_never_open_a_threshold(draft: str, expert: str) -> None:
    """The default grader records a loss of 1 for each, so no draft as uncertain as these is ever served."""
    with Running(pair(Reply(draft), Reply(expert)), epsilon=0.3) as (gateway, _):
        for _ in range(40):
            assert post(gateway.url, ASK).headers["x-bpac-answered-by"] == "expert"
        gateway.idle()
        status = gateway.status()
        assert status["threshold"] < 0.1  # the uncertainty of each
        assert status["forfeits"] == {}


@pytest.mark.parametrize(
    ("draft", "expert"), [(cut("42"), Reply("42")), (Reply("42"), cut("42")), (cut("42"), cut("42"))]
)
def test_an_answer_that_was_cut_off_has_no_verdict(draft: Reply, expert: Reply) -> None:
    """It could have ended in any way, so its loss is not known, which counts as 1."""
    with Running(pair(draft, expert), score={"name": "mean_token_probability", "otherwise": 0.5}) as (gateway, _):
        post(gateway.url, ASK)
        gateway.idle()
        assert gateway.status()["forfeits"] == {"grader failed": 1}


def grader_for(loss: Any) -> grading.Grader:
    """The grader of a route with that loss."""
    config = Config.read(settings("http://127.0.0.1:1/v1", loss=loss))
    grader = grader_of(config.routes["homework"])
    assert grader is not None
    return grader


def test_a_formula_without_end_does_not_block_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """While it is computed the event loop goes on; its verdict is unknown, and no process is left behind."""

    def limited(draft: str, expert: str, **more: Any) -> Verdict:
        return same_result(draft, expert, 2.0 if draft == ENDLESS else 60.0, **more)

    monkeypatch.setattr(grading, "same_result", limited)
    pids: set[int] = set()

    async def run() -> tuple[list[GradingOutcome], list[int]]:
        grader = grader_for({"name": "answer", "equal": "mathematics"})
        beats, found, counts = 0, [], []

        async def beat() -> None:
            nonlocal beats
            while True:
                await asyncio.sleep(0.01)
                beats += 1

        beating = asyncio.create_task(beat())
        for draft in (ENDLESS, "\\boxed{\\frac{8}{2}}", "\\boxed{1}" + " " * 400 + "x\\boxed{2}"):
            found.append(await graded(grader, "?", Answer(draft), Answer("\\boxed{4}")))
            counts.append(beats)
        beating.cancel()
        assert isinstance(grader, grading._Calculated)
        pids.update(grader.processes.pids)
        await grader.close()
        return found, counts

    found, beats = asyncio.run(run())
    assert [grade.loss for grade in found] == [None, 0.0, None]
    # The formula takes its process two seconds and more; a loop that waited for it would not have run meanwhile.
    assert beats[0] >= 10
    assert pids
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_a_stop_does_not_wait_for_a_formula() -> None:
    """The gateway stops at once, and the loss is not known."""

    async def run() -> GradingOutcome:
        grader = grader_for({"name": "answer", "equal": "mathematics"})
        await graded(grader, "?", Answer("\\boxed{x+1}"), Answer("\\boxed{1+x}"))
        waiting = asyncio.create_task(graded(grader, "?", Answer(ENDLESS), Answer("\\boxed{4}")))
        await asyncio.sleep(0.1)
        await grader.close()
        return await waiting

    assert asyncio.run(run()) == GradingOutcome(None)


def test_an_answer_that_is_too_long_has_no_verdict() -> None:
    """Its length is checked before all comparisons."""

    async def run(equal: str) -> GradingOutcome:
        grader = grader_for({"name": "answer", "equal": equal})
        found = await graded(grader, "?", Answer("a" * 200_000), Answer("a" * 200_000))
        await grader.close()
        return found

    for equal in ("final", "text", "mathematics"):
        assert asyncio.run(run(equal)) == GradingOutcome(None)


def test_calls_that_are_too_many_or_too_long_have_no_verdict() -> None:
    """Neither many nor long tool calls can hold up the comparison."""

    def calling(arguments: str, times: int) -> Answer:
        call = {"function": {"name": "f", "arguments": arguments}}
        return Answer("", tool_calls=(call,) * times, finish_reason="tool_calls")

    async def run(answer: Answer) -> GradingOutcome:
        return await graded(grader_for("tool_call"), "?", answer, answer)

    assert asyncio.run(run(calling('{"a": 1}', 3))) == GradingOutcome(0.0)
    assert asyncio.run(run(calling('{"a": 1}', 200))) == GradingOutcome(None)
    assert asyncio.run(run(calling('{"a": "' + "b" * 200_000 + '"}', 1))) == GradingOutcome(None)


def test_a_gateway_without_the_extra_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says what to install for comparing mathematics; other graders need nothing."""
    monkeypatch.setitem(sys.modules, "math_verify", None)
    with pytest.raises(MissingExtra, match=r"bpac\[grading\]"):
        grader_for({"name": "answer", "equal": "mathematics"})
    grader_for("answer")
