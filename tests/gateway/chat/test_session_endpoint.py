"""The gateway on aiohttp's public API, as it runs where aiohttp's inner names have changed."""

import pytest

from bpac.models import endpoint
from bpac.testing import Reply, Request
from tests.gateway.raw import post
from tests.gateway.running import ASK, Running, pair


@pytest.fixture(autouse=True)
def public_api(monkeypatch: pytest.MonkeyPatch) -> None:
    """Endpoints post with ``ClientSession.post``."""
    monkeypatch.setattr(endpoint, "DIRECT", False)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("policy", "text"), [("never", "forty one"), ("always", "forty two")])
def test_drafts_and_experts_answer_on_the_public_api(stream: bool, policy: str, text: str) -> None:
    """Whole and streamed, over connections that are used again."""
    with Running(pair(Reply("forty one"), Reply("forty two")), policy=policy) as (gateway, models):
        for _ in range(3):
            got = post(gateway.url, ASK | {"stream": stream})
            assert got.status == 200
            assert all(word in got.body.decode() for word in text.split())
        gateway.idle()
        assert gateway.status()["steps"] == 3
        assert models.accepted < len(models.requests) + 1
        (agent,) = {request.headers["user-agent"] for request in models.requests}
        assert agent.startswith("bpac/")


def test_failures_are_counted_the_same_on_the_public_api() -> None:
    """A refusal is passed on, what is not an answer is tried again, and a silent server is given up."""
    replies = {1: Reply("no such thing", status=404), 2: Reply(raw=b"<html>"), 3: Reply(cut=0), 4: Reply(delay=60.0)}

    def script(request: Request) -> Reply:
        return replies[request.body["seed"]]

    model = {"retries": 1, "backoff": 0.01, "timeout": 1.5, "breaker": 0}
    with Running(script, policy="never", model=model) as (gateway, models):
        got = [post(gateway.url, ASK | {"seed": seed}) for seed in (1, 2, 3, 4)]
        gateway.idle()
        page = post(gateway.url, b"", "/metrics", method="GET").body.decode()
    assert [one.status for one in got] == [404, 502, 502, 502]
    assert b"no such thing" in got[0].body
    assert len(models.requests) >= 7
    for kind in ("refused", "unusable", "connection", "timeout"):
        assert f'kind="{kind}"' in page
