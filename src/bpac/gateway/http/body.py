"""Reading the body of a request, up to a limit."""

from collections.abc import Iterable

from bpac.gateway.http.asgi import Receive
from bpac.gateway.http.bad_request import BadRequest

# Bytes of a body that holds a few short fields: a login form, or a decision and its loss.
SHORT_BODY = 10_000


async def read_body(
    headers: Iterable[tuple[bytes, bytes]], receive: Receive, most: int, too_large: str | None = None
) -> bytes:
    """The body of a request, or ``BadRequest`` if it is too large or if the caller disconnects before its end.

    Parameters
    ----------
    headers: of the request. A body that is announced as too large is refused unread.
    receive: gives the next part of the body.
    most: the number of bytes allowed.
    too_large: the error message for a larger body (default: one that names the limit).
    """
    announced = next((value for name, value in headers if name == b"content-length"), b"0")
    if announced.isdigit() and int(announced[:20]) > most:
        raise _too_large(most, too_large)
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise BadRequest("the caller disconnected before the end of the body")
        part = message.get("body", b"")
        size += len(part)
        if size > most:
            raise _too_large(most, too_large)
        parts.append(part)
        if not message.get("more_body"):
            return parts[0] if len(parts) == 1 else b"".join(parts)


def _too_large(most: int, message: str | None) -> BadRequest:
    # Created where it is raised: an error kept in a variable would keep alive, by its traceback, all that was read.
    return BadRequest(message or f"the body is larger than {most} bytes", 413, code="too_large")
