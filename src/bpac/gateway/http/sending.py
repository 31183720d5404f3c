"""Sending the response to a request of a model: a whole answer, or the events of a stream."""

from contextlib import aclosing

from bpac.gateway.chat.response import ChatResponse
from bpac.gateway.http.asgi import Send
from bpac.gateway.http.connections.keep_alive import STREAM_HEADERS


async def send_response(send: Send, response: ChatResponse) -> None:
    """Send a response to its end."""
    headers = response.headers
    try:
        if response.events is None:
            headers += [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(response.body))]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": response.body})
            return
        headers += STREAM_HEADERS
        async with aclosing(response.events) as events:
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            async for event in events:
                await send({"type": "http.response.body", "body": event, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
    finally:
        response.abandon()
