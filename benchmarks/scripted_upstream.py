"""A model server that costs next to nothing: what it took would be counted as the time of whoever asks it."""

import asyncio
import json
import math
import os
import sys
from typing import Any

import httptools
import uvloop

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


def _whole(logprobs: bool) -> bytes:
    body = _body(logprobs)
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)


def _streamed(logprobs: bool) -> bytes:
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    return head + b"".join(b"%x\r\n%b\r\n" % (len(event), event) for event in _events(logprobs)) + b"0\r\n\r\n"


# By whether pieces and log-probabilities are asked for. The pieces are sent at once: who hands them on need not wait.
REPLIES = {
    (stream, logprobs): _streamed(logprobs) if stream else _whole(logprobs)
    for stream in (False, True)
    for logprobs in (False, True)
}


class Upstream(asyncio.Protocol):
    """One connection: one answer, whole or in pieces, to whatever is asked."""

    def __init__(self) -> None:
        self._parser = httptools.HttpRequestParser(self)
        self._asked = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._write = transport.write  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_body(self, part: bytes) -> None:
        self._asked += part

    def on_message_complete(self) -> None:
        asked, self._asked = self._asked.replace(b" ", b""), b""
        reply = REPLIES[b'"stream":true' in asked, b'"logprobs":true' in asked]
        if DELAY:
            asyncio.get_running_loop().call_later(DELAY, self._write, reply)
        else:
            self._write(reply)


async def _serve(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(Upstream, "127.0.0.1", port, backlog=2048)
    async with server:
        await server.serve_forever()


def main() -> None:
    """Serve on the port that is given."""
    uvloop.run(_serve(int(sys.argv[1])))


if __name__ == "__main__":
    main()
