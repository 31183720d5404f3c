"""A model server that takes hardly any time: its time is part of every latency that is measured."""

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


def completion(*, logprobs: bool) -> bytes:
    """A chat completion."""
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": " ".join(f"word{at}" for at in range(TOKENS))},
        "logprobs": {"content": [_listed(at) for at in range(TOKENS)]} if logprobs else None,
        "finish_reason": "stop",
    }
    usage = {"prompt_tokens": 20, "completion_tokens": TOKENS, "total_tokens": TOKENS + 20}
    head = {"id": "x", "object": "chat.completion", "created": 0, "model": "m"}
    return json.dumps({**head, "choices": [choice], "usage": usage}).encode()


def stream_events(*, logprobs: bool) -> list[bytes]:
    """The same answer as the events of a stream."""
    head = {"id": "x", "object": "chat.completion.chunk", "created": 0, "model": "m"}
    choices: list[dict[str, Any]] = []
    for at in range(TOKENS):
        listed = {"content": [_listed(at)]} if logprobs else None
        choices.append({"index": 0, "delta": {"content": f" word{at}"}, "logprobs": listed, "finish_reason": None})
    choices.append({"index": 0, "delta": {}, "finish_reason": "stop"})
    events = [b"data: " + json.dumps({**head, "choices": [choice]}).encode() + b"\n\n" for choice in choices]
    return [*events, b"data: [DONE]\n\n"]


def _whole(logprobs: bool) -> bytes:
    body = completion(logprobs=logprobs)
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)


def _streamed(logprobs: bool) -> bytes:
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    return (
        head
        + b"".join(b"%x\r\n%b\r\n" % (len(event), event) for event in stream_events(logprobs=logprobs))
        + b"0\r\n\r\n"
    )


# By whether the request asks for a stream and for log-probabilities. All events are sent at once.
RESPONSES = {
    (stream, logprobs): _streamed(logprobs) if stream else _whole(logprobs)
    for stream in (False, True)
    for logprobs in (False, True)
}


class Upstream(asyncio.Protocol):
    """One connection: every request gets the same answer, whole or streamed."""

    def __init__(self) -> None:
        self._parser = httptools.HttpRequestParser(self)
        self._body = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._write = transport.write  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_body(self, part: bytes) -> None:
        self._body += part

    def on_message_complete(self) -> None:
        body, self._body = self._body.replace(b" ", b""), b""
        response = RESPONSES[b'"stream":true' in body, b'"logprobs":true' in body]
        if DELAY:
            asyncio.get_running_loop().call_later(DELAY, self._write, response)
        else:
            self._write(response)


async def _serve(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(Upstream, "127.0.0.1", port, backlog=2048)
    async with server:
        await server.serve_forever()


def main() -> None:
    """Serve on the port that is given."""
    uvloop.run(_serve(int(sys.argv[1])))


if __name__ == "__main__":
    main()
