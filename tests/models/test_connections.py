"""Streams that break off, callers who leave, clients that are shared: connections close when they should."""

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
    """What has come has been handed on: the error is ``Unavailable``, and one request was made."""

    async def ask(client: ModelClient) -> list[str]:
        texts: list[str] = []

        async def read() -> None:
            async for piece in client.stream(QUESTION):
                texts.append(piece.text)

        with pytest.raises(Unavailable, match="broke off its stream"):
            await read()
        return texts

    for broken in (Reply("one two three", cut=3), Reply("one two three", cut=3, pause=0.01)):
        texts, server = asking(broken, ask)
        assert texts == ["", "one", " two"]
        assert len(server.requests) == 1


def test_a_stream_may_end_without_its_mark() -> None:
    """If the model has said why it stopped, nothing is missing."""
    raw = b'data: {"choices": [{"delta": {"content": "42"}, "finish_reason": "stop"}]}\n\n'
    answer, server = asking(Reply(raw=raw), streamed)
    assert answer.text == "42"
    assert len(server.requests) == 1


def test_a_stream_that_ends_too_early() -> None:
    """Bytes that end in good order, but before the model has said why it stopped, are not a whole answer."""
    raw = b'data: {"choices": [{"delta": {"content": "4"}, "finish_reason": null}]}\n\n'
    error, server = asking(Reply(raw=raw), lambda client: error_of(streamed(client)))
    assert "broke off its stream: the stream was cut off" in str(error)
    assert len(server.requests) == 1


def test_a_slow_stream_is_no_silent_one() -> None:
    """A stream may take longer than the timeout, as long as the pieces keep coming."""
    answer, server = asking(Reply("one two three four", pause=0.2), streamed, timeout=1.0)
    assert answer.text == "one two three four"
    assert len(server.requests) == 1


def test_silence_in_the_middle_of_a_stream() -> None:
    """It ends the stream after the timeout."""
    error, _ = asking(Reply("one two", pause=60.0), lambda client: error_of(streamed(client)), timeout=0.1, retries=0)
    assert "no answer in time" in str(error)


@BOTH
def test_cancellation_closes_the_connection(ask: Callable[[ModelClient], Awaitable[Answer]]) -> None:
    """A server does not go on generating for a caller who has left."""

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


def test_a_stream_that_is_left_closes_the_connection() -> None:
    """Closing the generator is enough; the client stays open."""

    async def run(server: ScriptedServer) -> None:
        async with ModelClient(server.base_url, "m") as client:
            async with aclosing(client.stream(QUESTION)) as pieces:
                async for piece in pieces:
                    if piece.text:
                        break
            await asyncio.to_thread(wait_for, lambda: server.hang_ups == 1)

    with ScriptedServer(Reply("one two three", pause=0.2)) as server:
        asyncio.run(run(server))


def test_a_client_can_be_opened_again() -> None:
    """After closing, the next question opens new connections, also in another event loop."""
    with ScriptedServer(Reply("42")) as server:
        client = ModelClient(server.base_url, "m")

        async def ask() -> str:
            async with client:
                return (await client.complete(QUESTION)).text

        assert [asyncio.run(ask()), asyncio.run(ask())] == ["42", "42"]
        asyncio.run(client.close())


def test_one_connection_serves_many_questions() -> None:
    """Whole answers and streams that were read to their end leave the connection for the next question."""

    async def ask(client: ModelClient) -> list[str]:
        asked = [streamed, completed, streamed, streamed, completed]
        return [(await one(client)).text for one in asked]

    texts, server = asking(Reply("4 2"), ask)
    assert texts == ["4 2"] * 5
    assert len(server.requests) == 5
    assert server.accepted == 1


def test_a_server_that_does_not_end_its_stream_holds_nobody_up() -> None:
    """Its connection is given up shortly after the mark of the end; the answer is whole, and the client goes on."""
    piece = b'data: {"choices": [{"delta": {"content": "42"}, "finish_reason": "stop"}]}\n\n'
    open_ended = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n"

    async def run() -> list[str]:
        asked, given_up = 0, asyncio.Semaphore(0)

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal asked
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(int(line.split()[1]) for line in head.splitlines() if line.startswith(b"Content-Length"))
            await reader.readexactly(length)
            asked += 1
            data = piece + b"data: [DONE]\n\n"
            writer.write(open_ended % (len(data), data))
            await reader.read()  # until the client hangs up
            writer.close()
            await writer.wait_closed()
            given_up.release()

        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
            async with ModelClient(url, "m", timeout=600.0) as client, asyncio.timeout(20.0):
                texts = [(await streamed(client)).text for _ in range(2)]
                for _ in range(2):
                    await given_up.acquire()
        assert asked == 2
        return texts

    assert asyncio.run(run()) == ["42", "42"]


@BOTH
def test_cookies_are_not_kept(ask: Callable[[ModelClient], Awaitable[Answer]]) -> None:
    """What a server hands out with one answer does not come back with the next question."""

    async def run(base_url: str) -> None:
        async with ModelClient(base_url, "m") as client:
            for _ in range(3):
                await ask(client)

    with ScriptedServer(Reply(headers={"Set-Cookie": "session=of-somebody-else; Path=/"})) as server:
        # By a name: from an address alone no cookie would be taken anyway.
        asyncio.run(run(server.base_url.replace("127.0.0.1", "localhost")))
        assert [request.headers.get("cookie") for request in server.requests] == [None] * 3


def test_many_questions_at_once() -> None:
    """Two hundred calls share a client, and each gets its own answer."""

    async def ask(client: ModelClient) -> list[Answer]:
        asked = [client.complete([{"role": "user", "content": str(number)}]) for number in range(200)]
        return await asyncio.gather(*asked)

    answers, server = asking(lambda request: Reply(request.question, delay=0.05), ask, timeout=30.0)
    assert [answer.text for answer in answers] == [str(number) for number in range(200)]
    assert len(server.requests) == 200
