"""Connections are closed after broken streams and cancelled calls, and used again after complete answers."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing

import pytest

from bpac.answer import Answer
from bpac.errors import Unavailable
from bpac.models.client import ModelClient
from bpac.testing import Reply, ScriptedServer
from tests.gateway.configured import wait_for
from tests.models.asking import BOTH, QUESTION, asking, completed, error_of, streamed


def test_a_stream_that_breaks_off_is_not_repeated() -> None:
    """Its events have been returned already: the error is ``Unavailable``, and one request was made."""

    async def ask(client: ModelClient) -> list[str]:
        texts: list[str] = []

        async def read() -> None:
            async for event in client.stream(QUESTION):
                texts.append(event.text)

        with pytest.raises(Unavailable, match="broke off its stream"):
            await read()
        return texts

    for broken in (Reply("one two three", cut=3), Reply("one two three", cut=3, pause=0.01)):
        texts, server = asking(broken, ask)
        assert texts == ["", "one", " two"]
        assert len(server.requests) == 1


def test_a_stream_may_end_without_its_last_event() -> None:
    """If there was a finish reason, the answer is complete."""
    raw = b'data: {"choices": [{"delta": {"content": "42"}, "finish_reason": "stop"}]}\n\n'
    answer, server = asking(Reply(raw=raw), streamed)
    assert answer.text == "42"
    assert len(server.requests) == 1


def test_a_stream_that_ends_without_a_finish_reason_is_an_error() -> None:
    """Although the response itself is complete."""
    raw = b'data: {"choices": [{"delta": {"content": "4"}, "finish_reason": null}]}\n\n'
    error, server = asking(Reply(raw=raw), lambda client: error_of(streamed(client)))
    assert "broke off its stream: the stream was cut off" in str(error)
    assert len(server.requests) == 1


def test_a_stream_may_take_longer_than_the_timeout() -> None:
    """As long as its events keep coming."""
    text = " ".join(["word"] * 24)
    answer, server = asking(Reply(text, pause=0.1), streamed, timeout=2.0)
    assert answer.text == text
    assert len(server.requests) == 1


def test_a_pause_longer_than_the_timeout_ends_a_stream() -> None:
    """With an error that says so."""
    error, _ = asking(Reply("one two", pause=60.0), lambda client: error_of(streamed(client)), timeout=0.1, retries=0)
    assert "no answer in time" in str(error)


@BOTH
def test_cancellation_closes_the_connection(ask: Callable[[ModelClient], Awaitable[Answer]]) -> None:
    """So that the server stops generating."""

    async def run(server: ScriptedServer) -> None:
        async with ModelClient(server.base_url, "m") as client:
            task = asyncio.ensure_future(ask(client))
            await asyncio.to_thread(wait_for, lambda: len(server.requests) == 1)
            await asyncio.sleep(0.05)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.to_thread(wait_for, lambda: server.hang_ups == 1)

    with ScriptedServer(Reply("one two", delay=60.0 if ask is completed else 0.0, pause=60.0)) as server:
        asyncio.run(run(server))


def test_closing_the_generator_of_a_stream_closes_the_connection() -> None:
    """The client stays open."""

    async def run(server: ScriptedServer) -> None:
        async with ModelClient(server.base_url, "m") as client:
            async with aclosing(client.stream(QUESTION)) as events:
                async for event in events:
                    if event.text:
                        break
            await asyncio.to_thread(wait_for, lambda: server.hang_ups == 1)

    with ScriptedServer(Reply("one two three", pause=0.2)) as server:
        asyncio.run(run(server))


def test_a_client_can_be_opened_again() -> None:
    """After closing, the next request opens new connections, also in another event loop."""
    with ScriptedServer(Reply("42")) as server:
        client = ModelClient(server.base_url, "m")

        async def ask() -> str:
            async with client:
                return (await client.complete(QUESTION)).text

        assert [asyncio.run(ask()), asyncio.run(ask())] == ["42", "42"]
        asyncio.run(client.close())


def test_a_connection_is_used_again() -> None:
    """After whole answers, and after streams that were read to their end."""

    async def ask(client: ModelClient) -> list[str]:
        asked = [streamed, completed, streamed, streamed, completed]
        return [(await one(client)).text for one in asked]

    texts, server = asking(Reply("4 2"), ask)
    assert texts == ["4 2"] * 5
    assert len(server.requests) == 5
    assert server.accepted == 1


def test_a_server_that_keeps_a_finished_stream_open_is_not_awaited() -> None:
    """Its connection is closed shortly after the event that ends the stream, and the answer is complete."""
    event = b'data: {"choices": [{"delta": {"content": "42"}, "finish_reason": "stop"}]}\n\n'
    open_ended = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n"

    async def run() -> list[str]:
        asked, given_up = 0, asyncio.Semaphore(0)

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal asked
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(int(line.split()[1]) for line in head.splitlines() if line.startswith(b"Content-Length"))
            await reader.readexactly(length)
            asked += 1
            data = event + b"data: [DONE]\n\n"
            writer.write(open_ended % (len(data), data))
            await reader.read()  # until the client hangs up
            writer.close()
            await writer.wait_closed()
            given_up.release()

        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
            async with ModelClient(url, "m", timeout=600.0) as client, asyncio.timeout(60.0):
                texts = [(await streamed(client)).text for _ in range(2)]
                for _ in range(2):
                    await given_up.acquire()
        assert asked == 2
        return texts

    assert asyncio.run(run()) == ["42", "42"]


@BOTH
def test_cookies_are_not_kept(ask: Callable[[ModelClient], Awaitable[Answer]]) -> None:
    """A cookie that came with one answer is not sent with the next request."""

    async def run(base_url: str) -> None:
        async with ModelClient(base_url, "m") as client:
            for _ in range(3):
                await ask(client)

    with ScriptedServer(Reply(headers={"Set-Cookie": "session=of-somebody-else; Path=/"})) as server:
        # By a name: from an address alone no cookie would be taken anyway.
        asyncio.run(run(server.base_url.replace("127.0.0.1", "localhost")))
        assert [request.headers.get("cookie") for request in server.requests] == [None] * 3


def test_two_hundred_calls_at_once_get_their_own_answers() -> None:
    """From one client."""

    async def ask(client: ModelClient) -> list[Answer]:
        asked = [client.complete([{"role": "user", "content": str(number)}]) for number in range(200)]
        return await asyncio.gather(*asked)

    answers, server = asking(lambda request: Reply(request.question, delay=0.05), ask, timeout=30.0)
    assert [answer.text for answer in answers] == [str(number) for number in range(200)]
    assert len(server.requests) == 200
