"""The client against a real server: what it sends, reads, repeats and refuses."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from email.utils import formatdate
from typing import Any

import pytest

from bpac.answer import Answer
from bpac.errors import Refused, SettingsError, Unavailable
from bpac.models.client import ModelClient
from bpac.testing import SILENCE, Reply, Request, in_turn
from tests.models.asking import BOTH, QUESTION, asking, completed, error_of, streamed


def test_whole_and_streamed_answers_are_the_same() -> None:
    """Text, reasoning, log-probabilities and counts agree, and are those of the server."""
    reply = Reply("The answer is 42", reasoning="six times seven")
    whole, _ = asking(reply, completed)
    stream, _ = asking(reply, streamed)
    assert whole == stream
    assert (whole.text, whole.reasoning, len(whole.tokens), whole.completion_tokens) == (
        "The answer is 42", "six times seven", 4, 7
    )  # fmt: skip


def test_a_request_has_the_fields_of_the_call_and_of_the_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """Model, messages, key, headers and fields; the client's own override the call's, also within objects."""
    monkeypatch.setenv("THE_KEY", " secret\n")
    _, server = asking(
        Reply(),
        lambda client: client.ask(
            QUESTION, model="other", seed=1, stop=None, chat_template_kwargs={"enable_thinking": True, "x": 1}
        ),
        api_key="env:THE_KEY",
        headers={"x-tenant": "t", "x-secret": "env:THE_KEY"},
        body={"chat_template_kwargs": {"enable_thinking": False}},
    )
    (request,) = server.requests
    assert request.body == {
        "model": "m", "messages": QUESTION, "seed": 1, "chat_template_kwargs": {"enable_thinking": False, "x": 1}
    }  # fmt: skip
    assert request.headers["authorization"] == "Bearer secret"
    assert (request.headers["x-tenant"], request.headers["x-secret"]) == ("t", "secret")


def test_secrets_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither in a client's representation nor in an error."""
    monkeypatch.setenv("THE_KEY", "secret")
    client = ModelClient("http://127.0.0.1:9/v1/", "m", api_key="env:THE_KEY", headers={"x": "secret"}, retries=0)
    assert "secret" not in repr(client)
    assert str(client) == "m at http://127.0.0.1:9/v1"

    async def run() -> Exception:
        async with client:
            return await error_of(client.complete(QUESTION))

    assert "secret" not in str(asyncio.run(run()))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"base_url": "127.0.0.1:8001"}, "base_url must start with http"),
        ({"api_key": "env:NO_SUCH_VARIABLE"}, "api_key is env:NO_SUCH_VARIABLE, but"),
        ({"headers": {"x": "env:NO_SUCH_VARIABLE"}}, "header x is env:NO_SUCH_VARIABLE, but"),
        ({"timeout": 0}, "timeout"), ({"retries": -1}, "retries"), ({"backoff": 0}, "backoff"),
        ({"longest_wait": float("inf")}, "longest_wait"),
    ],
)  # fmt: skip
def test_a_wrong_setting_is_refused(settings: dict[str, Any], message: str) -> None:
    """Before anything is sent, with an error that names it."""
    with pytest.raises(SettingsError, match=message):
        ModelClient(**{"base_url": "http://127.0.0.1", "model": "m"} | settings)


@BOTH
@pytest.mark.parametrize(
    "failure",
    [
        Reply("busy", status=500), Reply("busy", status=503), Reply("wait", status=408), Reply("wait", status=409),
        Reply("wait", status=429), Reply(raw=b""), Reply(raw=b"<html>"), Reply(raw=b"{}"), Reply(raw=b"\xff\xfe"),
        Reply(raw=b'data: {"choices": 1}\n\n'), Reply(raw=b"data: [DONE]\n\n"), Reply(raw=b"[" * 100_000),
        Reply(raw=b'{"error": {"message": "no"}}'), Reply(cut=0), SILENCE,
    ],
)  # fmt: skip
def test_a_failure_that_may_pass_is_retried(ask: Callable[[ModelClient], Awaitable[Answer]], failure: Reply) -> None:
    """One failure costs one repetition; if all attempts fail, the error is ``Unavailable``."""
    timeout = 0.5 if failure is SILENCE else 5.0
    answer, server = asking(in_turn(failure, Reply("42")), ask, timeout=timeout)
    assert answer.text == "42"
    assert len(server.requests) == 2
    error, server = asking(failure, lambda client: error_of(ask(client)), retries=1, timeout=timeout)
    assert isinstance(error, Unavailable)
    assert "m at http://127.0.0.1" in str(error)
    assert "in 2 attempts" in str(error)
    assert error.status == (failure.status if failure.status >= 300 else None)
    assert len(server.requests) == 2


@BOTH
@pytest.mark.parametrize("status", [400, 401, 403, 404, 422, 302])
def test_a_refusal_is_not_retried(ask: Callable[[ModelClient], Awaitable[Answer]], status: int) -> None:
    """The error has the status and the message of the server. Redirects are not followed."""
    reply = Reply("no such model", status=status, headers={"Location": "http://127.0.0.1:9"})
    error, server = asking(reply, lambda client: error_of(ask(client)))
    assert isinstance(error, Refused)
    assert error.status == status
    assert ("it is at http://127.0.0.1:9; correct base_url" if status == 302 else "no such model") in str(error)
    assert len(server.requests) == 1


@BOTH
def test_an_answer_that_is_too_long_is_not_retried(
    ask: Callable[[ModelClient], Awaitable[Answer]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whole or streamed: another attempt would be as long."""
    monkeypatch.setattr("bpac.models.client.MAX_BYTES", 2000)
    error, server = asking(Reply("word " * 1000), lambda client: error_of(ask(client)))
    assert isinstance(error, Unavailable)
    assert "longer than 2000 bytes" in str(error)
    assert len(server.requests) == 1


def test_a_server_that_cannot_be_reached_is_unavailable() -> None:
    """After every attempt."""

    async def run() -> Exception:
        async with ModelClient("http://127.0.0.1:9/v1", "m", retries=1, backoff=0.01) as client:
            return await error_of(client.complete(QUESTION))

    assert "in 2 attempts" in str(asyncio.run(run()))


def test_the_message_of_an_error_body_is_quoted() -> None:
    """Also if the body is not what OpenAI sends."""
    for raw, message in ((b"plain \n words", "plain words"), (b'{"error": "short"}', "short"), (b"", "no message")):
        error, _ = asking(Reply(status=400, raw=raw), lambda client: error_of(completed(client)))
        assert str(error).endswith(f"status 400: {message}")


@pytest.mark.parametrize("as_date", [False, True])
def test_retry_after_is_honoured(as_date: bool) -> None:
    """The next attempt waits as long as the server asks for, in seconds or until a date."""

    def script(request: Request) -> Reply:
        if request.number > 1:
            return Reply()
        # A date has whole seconds: at least one is left of two.
        asked = formatdate(time.time() + 2.0, usegmt=True) if as_date else "0.4"
        return Reply("wait", status=429, headers={"Retry-After": asked})

    _, server = asking(script, completed)
    assert server.requests[1].at - server.requests[0].at >= (0.9 if as_date else 0.4)


def test_a_server_that_asks_for_a_long_wait_is_not_retried() -> None:
    """An attempt before that would not help."""
    busy = Reply("wait", status=503, headers={"Retry-After": "3600"})
    error, server = asking(busy, lambda client: error_of(completed(client)), longest_wait=1.0)
    assert "in 1 attempt: status 503" in str(error)
    assert len(server.requests) == 1


def test_waits_double() -> None:
    """Each is shortened at random by a half at most."""
    _, server = asking(Reply(status=500), lambda client: error_of(completed(client)), retries=3, backoff=0.1)
    times = [request.at for request in server.requests]
    assert all(times[number] - times[number - 1] >= 0.05 * 2 ** (number - 1) for number in (1, 2, 3))
