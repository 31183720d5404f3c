"""Cross-origin requests (CORS): which web pages may use the API from a browser.

Only the endpoints under ``/v1`` can be allowed, never the dashboard. Credentials of the browser, such as cookies, are
not allowed: a page sends an API key like any other client. The answer to a preflight request says what is allowed, and
needs no key, because browsers send none with it.
"""

from collections.abc import Iterable

from bpac.gateway.config.origins import ANY
from bpac.gateway.http.asgi import Message, Send

Header = tuple[bytes, bytes]

_PATHS = "/v1/"
# What a page may read of a response, beside its body.
_EXPOSED = (
    b"x-request-id, request-id, x-bpac-decision, x-bpac-answered-by, x-bpac-uncertainty, x-bpac-threshold, "
    b"x-bpac-propensity, x-bpac-unscored, x-bpac-fallback, x-bpac-deployment, x-bpac-estimated, "
    b"retry-after, x-ratelimit-limit-requests, x-ratelimit-remaining-requests, x-ratelimit-reset-requests, "
    b"x-ratelimit-limit-tokens, x-ratelimit-remaining-tokens, x-ratelimit-reset-tokens"
)
# Seconds for which a browser may keep the answer to a preflight request.
_KEPT = b"600"


class Cors:
    """Answers preflight requests, and marks responses for the pages that may read them.

    Parameters
    ----------
    origins: the origins of these pages.
    """

    def __init__(self, origins: Iterable[str]) -> None:
        self._origins = frozenset(origin.encode() for origin in origins)
        self._any = ANY.encode() in self._origins

    def allows(self, origin: bytes) -> bool:
        """Whether pages of an origin may use the API."""
        return self._any or origin.lower() in self._origins

    def answering(self, scope: Message, send: Send) -> Send:
        """Send responses with the headers by which a browser lets the page read them."""
        origin = _header(scope, b"origin")
        if not self._origins or origin is None or not scope["path"].startswith(_PATHS):
            return send
        added: list[Header] = [] if self._any else [(b"vary", b"Origin")]
        if self.allows(origin):
            added.append((b"access-control-allow-origin", b"*" if self._any else origin))
            added.append((b"access-control-expose-headers", _EXPOSED))

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *added]
            await send(message)

        return sent

    def is_preflight(self, scope: Message) -> bool:
        """Whether a request asks what a page of another origin may do."""
        return bool(
            self._origins
            and scope["method"] == "OPTIONS"
            and scope["path"].startswith(_PATHS)
            and _header(scope, b"origin") is not None
            and _header(scope, b"access-control-request-method") is not None
        )

    async def answer_preflight(self, scope: Message, send: Send) -> None:
        """Say what a page may do; ``send`` adds whether it may do anything."""
        headers: list[Header] = [(b"content-length", b"0")]
        if self.allows(_header(scope, b"origin") or b""):
            wanted = _header(scope, b"access-control-request-headers")
            headers += [(b"access-control-allow-methods", b"GET, POST"), (b"access-control-max-age", _KEPT)]
            headers += [(b"access-control-allow-headers", wanted)] if wanted else []
        await send({"type": "http.response.start", "status": 204, "headers": headers})
        await send({"type": "http.response.body", "body": b""})


def _header(scope: Message, name: bytes) -> bytes | None:
    return next((value for key, value in scope["headers"] if key == name), None)
