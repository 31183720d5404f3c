"""What the gateway is measured against: a model server that costs nothing, and a proxy that does nothing."""

import asyncio
import json
import math
import os
import sys
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import aiohttp
import uvicorn

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

TOKENS = int(os.environ.get("UPSTREAM_TOKENS", "100"))
DELAY = float(os.environ.get("UPSTREAM_DELAY", "0"))


def _listed(at: int) -> dict[str, Any]:
    return {"token": f" word{at}", "logprob": math.log(0.9), "bytes": list(b" word"), "top_logprobs": []}


def _body(logprobs: bool) -> bytes:
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": " ".join(f"word{at}" for at in range(TOKENS))},
        "logprobs": {"content": [_listed(at) for at in range(TOKENS)]} if logprobs else None,
        "finish_reason": "stop",
    }
    usage = {"prompt_tokens": 20, "completion_tokens": TOKENS, "total_tokens": TOKENS + 20}
    head = {"id": "x", "object": "chat.completion", "created": 0, "model": "m"}
    return json.dumps({**head, "choices": [choice], "usage": usage}).encode()


def _events(logprobs: bool) -> list[bytes]:
    head = {"id": "x", "object": "chat.completion.chunk", "created": 0, "model": "m"}
    pieces: list[dict[str, Any]] = []
    for at in range(TOKENS):
        listed = {"content": [_listed(at)]} if logprobs else None
        pieces.append({"index": 0, "delta": {"content": f" word{at}"}, "logprobs": listed, "finish_reason": None})
    pieces.append({"index": 0, "delta": {}, "finish_reason": "stop"})
    events = [b"data: " + json.dumps({**head, "choices": [piece]}).encode() + b"\n\n" for piece in pieces]
    return [*events, b"data: [DONE]\n\n"]


BODIES = {flag: _body(flag) for flag in (False, True)}
EVENTS = {flag: _events(flag) for flag in (False, True)}


async def _read(receive: Receive) -> bytes:
    data = b""
    while True:
        message = await receive()
        part: bytes = message.get("body", b"")
        data += part
        if not message.get("more_body"):
            return data


async def _lifespan(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        await send({"type": message["type"] + ".complete"})
        if message["type"] == "lifespan.shutdown":
            return


async def upstream(scope: Message, receive: Receive, send: Send) -> None:
    """A model server: one answer, whole or in pieces."""
    if scope["type"] == "lifespan":
        await _lifespan(receive, send)
        return
    asked = await _read(receive)
    if DELAY:
        await asyncio.sleep(DELAY)
    logprobs, stream = b'"logprobs":true' in asked.replace(b" ", b""), b'"stream":true' in asked.replace(b" ", b"")
    kind = b"text/event-stream" if stream else b"application/json"
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", kind)]})
    if stream:
        for event in EVENTS[logprobs]:
            await send({"type": "http.response.body", "body": event, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
    else:
        await send({"type": "http.response.body", "body": BODIES[logprobs]})


class PassThrough:
    """A proxy that hands bytes on, and nothing else.

    Parameters
    ----------
    url: where to.
    twice: whether it first asks for a draft with log-probabilities and throws it away: what cannot be saved where an
        expert is asked after a draft.
    """

    def __init__(self, url: str, *, twice: bool = False) -> None:
        self._url = url
        self._twice = twice
        self._session: aiohttp.ClientSession | None = None

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer what one scope brings."""
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
            return
        if self._session is None:
            self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
        data = await _read(receive)
        if self._twice and data:
            asked = json.loads(data) | {"stream": False, "logprobs": True}
            async with self._session.post(self._url, data=json.dumps(asked)) as response:
                await response.read()
        async with self._session.post(self._url, data=data) as response:
            headers = [(b"content-type", response.headers["Content-Type"].encode())]
            await send({"type": "http.response.start", "status": response.status, "headers": headers})
            if response.content_type == "text/event-stream":
                async for part in response.content.iter_any():
                    await send({"type": "http.response.body", "body": part, "more_body": True})
                await send({"type": "http.response.body", "body": b""})
            else:
                await send({"type": "http.response.body", "body": await response.read()})


def main() -> None:
    """Serve one of them: ``upstream PORT``, ``pass-through PORT URL`` or ``pass-through-twice PORT URL``."""
    kind, port, *url = sys.argv[1:]
    app: Any = upstream if kind == "upstream" else PassThrough(url[0], twice=kind.endswith("twice"))
    uvicorn.run(app, port=int(port), log_level="warning", access_log=False)


if __name__ == "__main__":
    main()
