"""Bodies of requests that hold a few words."""

from bpac.errors import MissingExtra
from bpac.gateway.http.bad_request import BadRequest

try:
    from starlette.requests import Request
except ImportError as error:
    raise MissingExtra("starlette", "gateway") from error

# Longer than a form with a key, or a decision and its loss.
LONGEST = 10_000


async def short_body(request: Request, complaint: str) -> bytes:
    """The body of a request, or ``BadRequest`` with that complaint if it is long."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > LONGEST:
            raise BadRequest(complaint, 413, code="too_large")
    return body
