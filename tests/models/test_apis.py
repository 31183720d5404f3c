"""The client on servers of the Responses and the Messages API, over real connections."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from bpac.answer import Token
from bpac.errors import Refused, Unavailable
from bpac.models.client import ModelClient
from bpac.testing import Reply, Request, ScriptedServer, in_turn
from bpac.wire.stream import Transcript
from tests.models.asking import QUESTION, asking, error_of
from tests.models.asking import completed as with_logprobs
from tests.models.asking import streamed as streamed_with_logprobs

API = pytest.mark.parametrize("api", ["responses", "messages"])
ANSWER = Reply("The answer is 42", reasoning="6 times 7", cached_tokens=5)


async def completed(client: ModelClient) -> Any:
    """A whole answer."""
    return await client.complete(QUESTION)


async def streamed(client: ModelClient) -> Any:
    """The same answer from a stream."""
    transcript = Transcript()
    async for event in client.stream(QUESTION):
        transcript.add([event])
    return transcript.answer()


BOTH = pytest.mark.parametrize("ask", [completed, streamed])


def sse(*events: dict[str, Any]) -> bytes:
    """A stream, as its bytes."""
    return b"".join(b"event: %b\ndata: %b\n\n" % (one["type"].encode(), json.dumps(one).encode()) for one in events)


@API
@BOTH
def test_an_answer_is_that_of_the_chat_api(api: str, ask: Any) -> None:
    """Text, reasoning and tokens are the same, through whichever API the model is asked."""
    answer, server = asking(ANSWER, ask, api=api)
    expected, _ = asking(ANSWER, ask)
    assert (answer.text, answer.reasoning, answer.finish_reason) == (
        expected.text, expected.reasoning, expected.finish_reason
    )  # fmt: skip
    assert (answer.prompt_tokens, answer.cached_tokens, answer.completion_tokens) == (7, 5, 7)
    assert [request.path for request in server.requests] == [f"/v1/{api}"]


def test_keys_are_sent_in_the_headers_of_the_api() -> None:
    """Those of the Messages API have names of their own, and each can be overridden."""
    _, server = asking(ANSWER, completed, api="responses", api_key="k")
    assert server.requests[0].headers["authorization"] == "Bearer k"
    _, server = asking(ANSWER, completed, api="messages", api_key="k")
    headers = server.requests[0].headers
    assert (headers["x-api-key"], headers["anthropic-version"]) == ("k", "2023-06-01")
    assert "authorization" not in headers
    own = {"X-Api-Key": "mine", "Anthropic-Version": "2030-01-01"}
    _, server = asking(ANSWER, completed, api="messages", api_key="k", headers=own)
    headers = server.requests[0].headers
    assert (headers["x-api-key"], headers["anthropic-version"]) == ("mine", "2030-01-01")


def test_log_probabilities_are_asked_for_where_the_api_has_them() -> None:
    """A model behind the Responses API can be a draft; one behind the Messages API refuses before anything is sent."""
    scored, _ = asking(
        Reply(tokens=(Token("4", -0.1, (-0.1, -1.0, -2.0), ("4", "5", "6")),) * 2), with_logprobs, api="responses"
    )
    assert [len(token.top) for token in scored.tokens] == [3, 3]
    for ask in (with_logprobs, streamed_with_logprobs):
        error, server = asking(ANSWER, refused(ask), api="messages")
        assert isinstance(error, Refused)
        assert "logprobs cannot be expressed in Anthropic's Messages API" in str(error)
        assert server.requests == []


def refused(ask: Callable[[ModelClient], Awaitable[Any]]) -> Callable[[ModelClient], Awaitable[Exception]]:
    """The error that a question ends in."""
    return lambda client: error_of(ask(client))


@API
@BOTH
def test_a_busy_server_is_asked_again(api: str, ask: Any) -> None:
    """Status 529 of Anthropic included, and an error that comes in place of the first event."""
    error = {"type": "overloaded_error", "message": "Overloaded"}
    failed = sse({"type": "error", "error": error})
    script = in_turn(Reply("Overloaded", status=529), Reply(raw=failed), ANSWER)
    answer, server = asking(script, ask, api=api)
    assert answer.text == "The answer is 42"
    assert len(server.requests) == 3


class Breaking(Reply):
    """A stream that ends in an error after its first words."""

    def chunks(self, request: Request) -> Iterator[dict[str, Any]]:
        """The events, each of which arrives alone."""
        for event in super().chunks(request):
            yield event
            if " answer" in str(event.get("delta")):
                yield {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}


@API
def test_an_error_within_a_stream_ends_it(api: str) -> None:
    """A repetition would not continue the same answer."""
    broken = Breaking("The answer is 42", pause=0.02)
    error, server = asking(broken, lambda client: error_of(streamed(client)), api=api)
    assert isinstance(error, Unavailable)
    assert len(server.requests) == 1


@API
def test_a_stream_that_is_cut_off_is_no_answer(api: str) -> None:
    """Wherever it is cut off before the reason why the model stopped."""
    length = len([*ANSWER.chunks(Request(1, {}, path=f"/v1/{api}"))])
    last = length - (1 if api == "responses" else 2)

    async def all_cuts(base_url: str) -> None:
        async with ModelClient(base_url, "m", api=api, retries=0, timeout=5.0) as client:  # type: ignore[arg-type]
            for _ in range(last + 1):
                assert isinstance(await error_of(streamed(client)), Unavailable)
            assert (await streamed(client)).text == "The answer is 42"

    with ScriptedServer(
        in_turn(*(Reply("The answer is 42", reasoning="6 times 7", cut=cut) for cut in range(last + 1)), ANSWER)
    ) as server:
        asyncio.run(all_cuts(server.base_url))


def test_requests_at_fault_are_not_repeated() -> None:
    """Whether the server says so by its status or within a response with status 200."""
    failed = {
        "object": "response",
        "status": "failed",
        "error": {"code": "invalid_prompt", "message": "no"},
        "output": [],
    }
    for reply in (Reply("no", status=400), Reply(raw=json.dumps(failed).encode())):
        error, server = asking(reply, lambda client: error_of(completed(client)), api="responses")
        assert isinstance(error, Refused)
        assert len(server.requests) == 1
