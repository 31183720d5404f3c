"""Streams: when the first byte comes, and what follows."""

import http.client
import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pytest

from bpac.testing import Reply, Request
from tests.gateway.configured import wait_for
from tests.gateway.raw import CHAT, open_chat, post
from tests.gateway.running import ASK, Running, pair

STREAMED = ASK | {"stream": True}
LONG = Reply(" ".join(["word"] * 60), probability=0.8, pause=0.02)
PREFIX = {"name": "mean_token_probability", "first_tokens": 16}


@dataclass(frozen=True, slots=True)
class Held(Reply):
    """A stream that stops after some chunks until it may go on."""

    after: int = 0
    go_on: threading.Event = field(default_factory=threading.Event)

    def chunks(self, request: Request) -> Iterator[dict[str, Any]]:
        """The chunks, with a stop among them."""
        for at, chunk in enumerate(Reply.chunks(self, request)):
            if at == self.after:
                assert self.go_on.wait(60.0)
            yield chunk


def received(url: str, at_first: Callable[[], None]) -> list[str]:
    """The texts of a stream's events; something is done when the first has come."""
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=60)
    connection.request("POST", CHAT, json.dumps(STREAMED), {"Content-Type": "application/json"})
    texts: list[str] = []
    for line in connection.getresponse():
        if line.startswith(b"data: {"):
            if not texts:
                at_first()
            texts.append(json.loads(line[6:])["choices"][0]["delta"].get("content") or "")
    connection.close()
    return texts


def test_an_accepted_draft_streams_before_it_is_complete() -> None:
    """With a score of the first 16 tokens, the first byte comes when they have arrived, and the rest as it is
    generated.
    """
    draft = Held(LONG.text, probability=0.8, after=20)
    with Running(pair(draft, Reply("42")), policy="never", score=PREFIX) as (gateway, _):
        assert "".join(received(gateway.url, draft.go_on.set)) == LONG.text


def test_a_whole_answer_score_waits_for_the_whole_draft() -> None:
    """The draft is buffered until it is accepted, and then sent in chunks."""
    go_on, early = threading.Event(), list[bool]()

    def draft(_: Request) -> Reply:
        assert go_on.wait(60.0)
        return Reply(LONG.text)

    with Running(pair(draft, Reply("42")), policy="never") as (gateway, models), ThreadPoolExecutor() as pool:
        got = pool.submit(received, gateway.url, lambda: early.append(not go_on.is_set()))
        wait_for(lambda: len(models.requests) == 1)
        go_on.set()
        texts = got.result(60.0)
        assert early == [False]
        assert "".join(texts) == LONG.text
        assert len(texts) > 5


def test_the_expert_streams_without_buffering() -> None:
    """Its first byte comes long before its last, including its reasoning."""
    expert = Held(LONG.text, reasoning="hm", after=10)
    with Running(pair(Reply("41"), expert), policy="always") as (gateway, _):
        assert "".join(received(gateway.url, expert.go_on.set)) == LONG.text


def test_a_shadow_audit_does_not_delay_the_draft() -> None:
    """The draft comes at once, although the expert takes long."""
    options: dict[str, Any] = {"explore": "shadow", "epsilon": 0.5}
    with Running(pair(Reply("42"), Reply("42")), **options) as (gateway, models):
        # Drafts without a loss, until some threshold is certified.
        while post(gateway.url, ASK).headers["x-bpac-answered-by"] == "expert":
            gateway.idle()
        models.script = pair(Reply("42"), Reply("42", delay=1.0))
        for _ in range(60):
            assert post(gateway.url, STREAMED).headers["x-bpac-answered-by"] == "draft"
            if gateway.service.busy:
                break
        assert gateway.service.busy
        gateway.idle()
        assert gateway.status()["owed"] == 0


@pytest.mark.parametrize(
    ("on_takeover", "hang_ups", "forfeits"), [("finish", 0, {}), ("cancel", 1, {"draft cancelled": 1})]
)
def test_a_draft_that_is_not_accepted_is_cancelled_or_finished(on_takeover: str, hang_ups: int, forfeits: Any) -> None:
    """It is cancelled if its grade would change nothing, as with a fixed threshold; or finished if so configured."""
    loss = {"name": "answer", "equal": "text"}
    options = {"policy": "always", "score": PREFIX, "on_takeover": on_takeover, "loss": loss}
    with Running(pair(LONG, Reply("42")), **options) as (gateway, models):
        assert b"42" in post(gateway.url, STREAMED).body
        gateway.idle()
        wait_for(lambda: models.hang_ups == hang_ups)
        status = gateway.status()
        assert (status["owed"], status["forfeits"]) == (0, forfeits)


def test_a_kept_draft_is_cancelled_when_its_caller_leaves() -> None:
    """The draft is cancelled at its server: it was kept, and is never graded."""
    with Running(pair(LONG, Reply("42")), policy="never", score=PREFIX) as (gateway, models):
        caller = open_chat(gateway.url, STREAMED)
        assert b"200 OK" in caller.recv(1000)
        caller.close()
        wait_for(lambda: models.hang_ups == 1)
        gateway.idle()
        assert gateway.status()["steps"] == 1


def test_a_draft_that_breaks_off_after_its_decision_ends_with_an_error() -> None:
    """The stream ends with an error event; the round was decided on the first tokens, and stays as it is."""
    broken = Reply(LONG.text, probability=0.8, cut=30)
    with Running(pair(broken, Reply("42")), policy="never", score=PREFIX) as (gateway, _):
        got = post(gateway.url, STREAMED)
        assert got.status == 200
        assert b'"code":"upstream_failed"' in got.body
        assert b"[DONE]" not in got.body
        gateway.idle()
        assert gateway.status()["steps"] == 1


def test_a_short_draft_is_scored_by_all_its_tokens() -> None:
    """A draft with fewer tokens than the score uses has the score of all of them."""
    with Running(pair(Reply("4 2", probability=0.75), Reply("42")), policy="never", score=PREFIX) as (gateway, _):
        got = post(gateway.url, STREAMED)
        assert float(got.headers["x-bpac-uncertainty"]) == pytest.approx(0.25)
