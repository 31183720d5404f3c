"""Ask a real server once, and return its answer."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from bpac.answer import Answer
from bpac.errors import Refused, Unavailable
from bpac.models.client import ModelClient
from bpac.testing import Reply, Script, ScriptedServer
from bpac.wire.stream import Transcript

QUESTION = [{"role": "user", "content": "6 · 7?"}]


def asking(
    script: Script | Reply, ask: Callable[[ModelClient], Awaitable[Any]], **settings: Any
) -> tuple[Any, ScriptedServer]:
    """What a client got from a server with that script, and the server. No task may be left over."""

    async def run(base_url: str) -> Any:
        async with ModelClient(base_url, "m", **{"backoff": 0.01, "timeout": 5.0} | settings) as client:
            got = await ask(client)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return got

    with ScriptedServer(script) as server:
        return asyncio.run(run(server.base_url)), server


async def completed(client: ModelClient) -> Answer:
    """A whole answer."""
    return await client.complete(QUESTION, logprobs=True, top_logprobs=3)


async def streamed(client: ModelClient) -> Answer:
    """The same answer from a stream."""
    transcript = Transcript()
    async for event in client.stream(QUESTION, logprobs=True, top_logprobs=3):
        transcript.add([event])
    return transcript.answer()


async def error_of(awaited: Awaitable[Any]) -> Exception:
    """The model error it ends with."""
    with pytest.raises((Refused, Unavailable)) as caught:
        await awaited
    return caught.value


BOTH = pytest.mark.parametrize("ask", [completed, streamed])
