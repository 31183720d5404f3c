"""What the gateway is compared with: a proxy that only passes bytes on."""

import json
import sys
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import aiohttp
import uvicorn

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


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


class PassThrough:
    """A proxy that passes bytes on, and does nothing else.

    Parameters
    ----------
    url: the URL that requests are sent to.
    twice: whether it first requests a draft with log-probabilities and discards it, which is the least that a request
        costs where an expert is called after a draft.
    """

    def __init__(self, url: str, *, twice: bool = False) -> None:
        self._url = url
        self._twice = twice
        self._session: aiohttp.ClientSession | None = None

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Serve one ASGI scope."""
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
            return
        if self._session is None:
            self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
        data = await _read(receive)
        if self._twice and data:
            draft = json.loads(data) | {"stream": False, "logprobs": True}
            async with self._session.post(self._url, data=json.dumps(draft)) as response:
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
    """Serve ``pass-through PORT URL`` or ``pass-through-twice PORT URL``."""
    kind, port, url = sys.argv[1:]
    uvicorn.run(PassThrough(url, twice=kind.endswith("twice")), port=int(port), log_level="warning", access_log=False)


if __name__ == "__main__":
    main()
