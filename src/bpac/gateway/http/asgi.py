"""The ASGI messages that the gateway exchanges with its server, and how an error is sent."""

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

from bpac.gateway.http.errors import ErrorResponse

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


async def send_error(send: Send, response: ErrorResponse, known: Iterable[tuple[bytes, bytes]] = ()) -> None:
    """Send an error as the whole response to a request.

    Parameters
    ----------
    send: sends the messages.
    response: the error.
    known: further headers, about the decision that was made (default: none).
    """
    headers = [(name.encode(), value.encode("latin-1", "replace")) for name, value in response.headers.items()]
    headers += known
    headers.append((b"content-length", b"%d" % len(response.body)))
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    await send({"type": "http.response.body", "body": response.body})
