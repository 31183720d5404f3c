"""Model servers that fail late, never end, or send what no server should: what is counted stays right."""

import gzip
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from bpac.testing import Reply, Request, ScriptedServer
from tests.gateway.configured import settings, wait_for
from tests.gateway.raw import Got, post
from tests.gateway.running import ASK, Running, RunningGateway, pair

STREAMED = ASK | {"stream": True}
FAILED_LATE = Reply("no", status=500, delay=2.5)
PREFIX = {"name": "mean_token_probability", "first_tokens": 2}
NO_END = Reply(" ".join(["word"] * 2000), pause=0.05)


def counted(tokens: Any) -> Reply:
    """An answer with token counts of the server's own making."""
    choice = {"index": 0, "message": {"role": "assistant", "content": "42"}, "finish_reason": "stop"}
    return Reply(raw=json.dumps({"choices": [choice], "usage": {"completion_tokens": tokens}}).encode())


@pytest.mark.parametrize("ask", [ASK, STREAMED])
@pytest.mark.parametrize("score", ["mean_token_probability", PREFIX])
def test_a_draft_that_could_not_be_counted_is_not_served(ask: Any, score: Any) -> None:
    """The round was forfeited at its deadline before the expert failed: a draft in its place would not be counted."""
    options = {"on_expert_failure": "draft", "deadline": 1.0, "score": score}
    with Running(pair(Reply("4 2 or so"), FAILED_LATE), **options) as (gateway, _):
        got = post(gateway.url, ask)
        assert (got.status, got.headers.get("x-bpac-fallback")) == (502, None)
        gateway.idle()
        assert gateway.status()["forfeits"] == {"deadline": 1}


def test_drafts_in_place_of_the_expert_are_in_the_certificate() -> None:
    """All of them, also where rounds exceed ``max_owed``."""
    expert = Reply("no", status=500, delay=0.5)
    with Running(pair(Reply("42"), expert), on_expert_failure="draft", max_owed=2) as (gateway, _):
        with ThreadPoolExecutor(8) as callers:
            got: list[Got] = list(callers.map(lambda _: post(gateway.url, ASK), range(8)))
        gateway.idle()
        served = sum("x-bpac-fallback" in one.headers for one in got)
        assert served == sum(one.status == 200 for one in got) < 8
        assert gateway.status()["certificate"]["upper"] == served


@pytest.mark.parametrize("tokens", [-100, 10**30, "many", True, 1.5])
def test_impossible_token_counts_are_ignored(tmp_path: Path, tokens: Any) -> None:
    """They are treated as unknown: the gateway goes on, and restarts."""
    options = {"store": f"sqlite:///{tmp_path / 'bpac.db'}"}

    def expert(request: Request) -> Reply:
        return counted(tokens)

    with ScriptedServer(pair(Reply("42"), expert)) as models:
        config = settings(models.base_url, gateway=options, epsilon=0.5)
        with RunningGateway(config) as gateway:
            audited = 0
            while audited < 3:
                got = post(gateway.url, ASK)
                assert got.status == 200
                audited += got.headers["x-bpac-answered-by"] == "expert" and got.headers["x-bpac-propensity"] != "1.0"
                gateway.idle()
            before = gateway.status()
        assert (before["owed"], before["savings"]["expert_tokens"]) == (0, 0)
        with RunningGateway(config) as gateway:
            assert gateway.status() == before


def test_feedback_is_refused_where_the_gateway_grades() -> None:
    """Otherwise callers could open the threshold for their own requests."""
    with Running(pair(Reply("41"), Reply("42", delay=0.5))) as (gateway, _):
        got = post(gateway.url, STREAMED)
        decision = got.headers["x-bpac-decision"]
        response = post(gateway.url, {"decision": decision, "loss": 0.0}, path="/v1/feedback")
        assert response.status == 409
        assert b"graded by the gateway" in response.body
        gateway.idle()
        assert gateway.status()["forfeits"] == {}


@pytest.mark.parametrize(
    ("draft", "expert", "options"),
    [
        (Reply("42"), NO_END, {"policy": "always"}),
        (NO_END, Reply("42"), {"policy": "never", "score": PREFIX}),
        (Reply("42", logprobs=False), NO_END, {"policy": "never"}),
    ],
    ids=["expert", "draft", "unscored"],
)
def test_a_stream_without_end_is_given_up(draft: Reply, expert: Reply, options: Any) -> None:
    """The stream is not silent, so no timeout ends it; the deadline of the route does."""
    with Running(pair(draft, expert), deadline=1.0, **options) as (gateway, _):
        got = post(gateway.url, STREAMED)
        assert got.status == 200
        assert b'"code":"upstream_failed"' in got.body
        gateway.idle()
        assert gateway.status()["owed"] == 0


def test_a_malformed_draft_stream_ends_with_an_error() -> None:
    """Parts of tool calls that do not fit together: the stream ends with an error event."""
    parts: list[Any] = [
        {"tool_calls": [{"index": index, "function": {"name": "f", "arguments": "{}"}}]} for index in (0, "1")
    ]
    listed = {"content": [{"token": "4", "logprob": -0.1}] * 4}
    events = [{"choices": [{"index": 0, "delta": {"content": "4"}, "logprobs": listed}]}]
    events += [{"choices": [{"index": 0, "delta": part}]} for part in parts]
    raw = b"".join(b"data: %b\n\n" % json.dumps(event).encode() for event in events)
    draft = Reply(raw=raw + b"data: [DONE]\n\n", headers={"Content-Type": "text/event-stream"})
    with Running(pair(draft, Reply("42")), policy="never", score=PREFIX) as (gateway, _):
        assert post(gateway.url, STREAMED).status == 200
        gateway.idle()


def test_a_compressed_answer_is_limited_after_decompression() -> None:
    """A small compressed answer that decompresses to too much is refused."""
    packed = gzip.compress(b"0" * 2**27, compresslevel=1)
    bomb = Reply(raw=packed, headers={"Content-Encoding": "gzip"})
    with Running(pair(bomb, bomb)) as (gateway, _):
        assert post(gateway.url, ASK).status == 502


def test_requests_get_an_error_when_a_stop_takes_too_long() -> None:
    """A stop that takes too long ends requests with OpenAI's error body."""
    got: list[Got] = []
    with ScriptedServer(pair(Reply("42"), Reply("42", delay=30.0))) as models:
        with RunningGateway(settings(models.base_url, gateway={"drain": 1.0})) as gateway:
            caller = threading.Thread(target=lambda: got.append(post(gateway.url, ASK)))
            caller.start()
            wait_for(lambda: len(models.requests) == 2)
        caller.join()
    assert got[0].status == 503
    assert json.loads(got[0].body)["error"]["code"] == "shutting_down"


def test_expert_tokens_of_unscored_requests_are_counted() -> None:
    """They were generated, although nothing is learnt from them."""
    with Running(pair(Reply("42", logprobs=False), Reply("4 2")), policy="never") as (gateway, _):
        for ask in (ASK, STREAMED):
            assert "x-bpac-unscored" in post(gateway.url, ask).headers
        gateway.idle()
        savings = gateway.status()["savings"]
        assert savings["expert_tokens"] == savings["always_tokens"] == 4
