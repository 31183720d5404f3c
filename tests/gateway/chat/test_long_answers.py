"""Answers of models that are too long, or take too much memory once decoded, are failures of that model."""

import json
from typing import Any

import pytest

from bpac.testing import Reply
from tests.gateway.configured import get_json
from tests.gateway.measured import metric
from tests.gateway.raw import post
from tests.gateway.running import ASK, Running, pair

STREAMED = ASK | {"stream": True}
PREFIX = {"name": "mean_token_probability", "first_tokens": 2}
LIMITS = {"max_answer": 200_000, "max_answer_values": 5_000}


def stream(content: str, count: int) -> Reply:
    """Events with that text, sent as fast as possible."""
    logprobs = {"content": [{"token": content, "logprob": -0.1}]}
    choice = {"index": 0, "delta": {"content": content}, "logprobs": logprobs, "finish_reason": None}
    event = b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"
    last = b'data: {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'
    return Reply(raw=event * count + last, headers={"Content-Type": "text/event-stream"})


def whole(**fields: Any) -> Reply:
    """An answer with further fields."""
    choice = {"index": 0, "message": {"role": "assistant", "content": "42"}, "finish_reason": "stop"}
    return Reply(raw=json.dumps({"choices": [choice], **fields}).encode())


def test_a_stream_within_the_limit_is_passed_on_to_its_end() -> None:
    """The limit is on all of it."""
    with Running(pair(Reply("41"), stream("word ", 500)), gateway=LIMITS, policy="always") as (gateway, _):
        got = post(gateway.url, STREAMED)
        assert got.body.count(b"word ") >= 500
        assert got.body.endswith(b"data: [DONE]\n\n")
        gateway.idle()
        assert "expert failed" not in gateway.status()["forfeits"]


def test_an_expert_stream_that_is_too_long_ends_in_an_error() -> None:
    """For its caller, and the round is forfeited for that reason."""
    model = {"retries": 2}
    with Running(pair(Reply("41"), stream("word ", 5000)), gateway=LIMITS, model=model, policy="always") as (
        gateway,
        models,
    ):
        got = post(gateway.url, STREAMED)
        assert b'"code":"upstream_failed"' in got.body
        assert len(got.body) < 2 * LIMITS["max_answer"]
        gateway.idle()
        assert gateway.status()["forfeits"] == {"expert failed": 1}
        assert len(models.requests) == 2, "an answer that was too long is not asked for again"
        assert metric(gateway, "bpac_upstream_failures_total", model="large", kind="too_long") == 1


@pytest.mark.parametrize("policy", ["always", "never"])
def test_a_draft_stream_that_is_too_long_ends_in_an_error(policy: str) -> None:
    """If its first tokens were accepted; if the expert checks it, the round is forfeited."""
    options = {"policy": policy, "score": PREFIX, "on_takeover": "finish"}
    with Running(pair(stream("word ", 5000), Reply("42")), gateway=LIMITS, **options) as (gateway, _):
        got = post(gateway.url, STREAMED)
        assert (b'"code":"upstream_failed"' in got.body) is (policy == "never")
        gateway.idle()
        assert gateway.status()["forfeits"] == ({} if policy == "never" else {"draft failed": 1})


@pytest.mark.parametrize(
    "answer",
    [whole(padding="x" * 300_000), whole(more=[[]] * 10_000), whole(choices=[{"message": {}}] * 10_000)],
    ids=["bytes", "lists", "choices"],
)
def test_a_whole_answer_that_is_too_long_is_an_error(answer: Reply) -> None:
    """Too many bytes, or too many values in few bytes: status 502, and no second attempt."""
    with Running(pair(Reply("41"), answer), gateway=LIMITS, model={"retries": 2}, policy="always") as (gateway, models):
        got = post(gateway.url, ASK)
        assert (got.status, got.json["error"]["code"]) == (502, "upstream_failed")
        gateway.idle()
        assert gateway.status()["forfeits"] == {"expert failed": 1}
        assert len(models.requests) == 2


def test_an_event_of_too_many_values_is_refused_before_it_is_decoded() -> None:
    """Few bytes can take much memory."""
    event = b'data: {"choices": [%b{"delta": {}}]}\n\n' % (b'{"delta":{}},' * 10_000)
    answer = Reply(raw=event, headers={"Content-Type": "text/event-stream"})
    with Running(pair(Reply("41"), answer), gateway=LIMITS, policy="always") as (gateway, _):
        assert post(gateway.url, STREAMED).status == 502
        assert get_json(f"{gateway.url}/healthz") == {"status": "ok"}
