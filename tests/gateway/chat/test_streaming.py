"""Streams: when the first byte comes, and what follows."""

import http.client
import json
import time
from typing import Any

import pytest

from bpac.testing import Reply
from tests.gateway.configured import wait_for
from tests.gateway.raw import CHAT, open_chat, post
from tests.gateway.running import ASK, Running, pair

STREAMED = ASK | {"stream": True}
LONG = Reply(" ".join(["word"] * 60), probability=0.8, pause=0.02)
PREFIX = {"name": "mean_token_probability", "first_tokens": 16}


def arrivals(url: str) -> tuple[list[float], str]:
    """The time of each event in seconds, and the whole text."""
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=60)
    started = time.monotonic()
    connection.request("POST", CHAT, json.dumps(STREAMED), {"Content-Type": "application/json"})
    response = connection.getresponse()
    times, text = [], ""
    for line in response:
        if line.startswith(b"data: {"):
            times.append(time.monotonic() - started)
            delta = json.loads(line[6:])["choices"][0]["delta"]
            text += delta.get("content") or ""
    connection.close()
    return times, text


def test_an_accepted_draft_streams_before_it_is_complete() -> None:
    """With a score of the first 16 tokens, the first byte comes when they have arrived, and the rest as it is
    generated.
    """
    with Running(pair(LONG, Reply("42")), policy="never", score=PREFIX) as (gateway, _):
        times, text = arrivals(gateway.url)
        assert text == LONG.text
        # Sixteen of its sixty tokens are there after about a quarter of the time that all of them take.
        assert times[0] < 0.8 * times[-1]


def test_a_whole_answer_score_waits_for_the_whole_draft() -> None:
    """The draft is buffered until it is accepted, and then sent in chunks."""
    with Running(pair(Reply(LONG.text, delay=0.3), Reply("42")), policy="never") as (gateway, _):
        times, text = arrivals(gateway.url)
        assert text == LONG.text
        assert times[0] > 0.3
        assert len(times) > 5


def test_the_expert_streams_without_buffering() -> None:
    """Its first byte comes long before its last, including its reasoning."""
    expert = Reply(LONG.text, reasoning="hm", pause=0.02)
    with Running(pair(Reply("41"), expert), policy="always") as (gateway, _):
        times, text = arrivals(gateway.url)
        assert text == LONG.text
        assert times[0] < 0.8 * times[-1]


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
