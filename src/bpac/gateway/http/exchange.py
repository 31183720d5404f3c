"""One request and its response: the ids that every response carries, in headers and, if asked for, in the body."""

from typing import Any

from bpac.gateway.http.asgi import Message, Send
from bpac.gateway.telemetry.request_ids import CURRENT, HEADER, request_id
from bpac.wire.json import to_json

Header = tuple[bytes, bytes]

# The key of an exchange in the ASGI scope.
KEY = "bpac.exchange"
# A request with this header and the value ``body`` gets the ids in its response's body, too.
WANTED = (b"x-bpac-ids", b"body")
# Anthropic's clients look for the id in this header.
_OF_MESSAGES, _MESSAGES = b"request-id", "/v1/messages"
# What a stream of that API gets while its first event is awaited: there are no ids yet to put into it.
_PING = b"event: ping"
# The headers that are repeated in the body, and the names they have there.
_IN_BODY = {
    b"x-bpac-decision": "decision",
    b"x-bpac-answered-by": "answered_by",
    b"x-bpac-unscored": "unscored",
    b"x-bpac-session": "session",
    b"x-bpac-fallback": "fallback",
}


class Exchange:
    """What is known about a request while it is answered.

    Parameters
    ----------
    scope: the ASGI scope of the request.

    Attributes
    ----------
    id: the id of the request.
    headers: the headers with which the response carries it.
    known: headers about the decision, from the moment of the decision on, so that an error has them, too.
    """

    __slots__ = ("_in_body", "headers", "id", "known")

    def __init__(self, scope: Message) -> None:
        headers = scope["headers"]
        self.id = request_id(headers)
        self.headers = [(HEADER, self.id)]
        if scope["path"].startswith(_MESSAGES):
            self.headers.append((_OF_MESSAGES, self.id))
        self.known: list[Header] = []
        self._in_body = WANTED in headers
        scope[KEY] = self
        CURRENT.set(self.id.decode())

    def answering(self, send: Send) -> Send:
        """Send responses with the id, and with the ids in the body if the caller asked for that."""
        return _WithIds(self, send).send if self._in_body else self._with_header(send)

    def _with_header(self, send: Send) -> Send:
        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *self.headers]
            await send(message)

        return sent

    def ids(self) -> dict[str, str]:
        """The ids as JSON values."""
        found = {"request_id": self.id.decode()}
        found |= {_IN_BODY[name]: value.decode("latin-1") for name, value in self.known if name in _IN_BODY}
        return found


class _WithIds:
    """Writes the ids as the first field, ``bpac``, of a JSON object or of the first event of a stream."""

    def __init__(self, exchange: Exchange, send: Send) -> None:
        self._exchange = exchange
        self._send = send
        self._start: dict[str, Any] | None = None
        self._before = b""

    async def send(self, message: Message) -> None:
        """Pass a message on; the start waits for the body, because the ids change its length."""
        exchange = self._exchange
        if message["type"] == "http.response.start":
            kind = next((value for name, value in message["headers"] if name == b"content-type"), b"")
            streamed = kind.startswith(b"text/event-stream")
            self._before = b"data: {" if streamed else b"{" if kind.startswith(b"application/json") else b""
            start = {**message, "headers": [*message["headers"], *exchange.headers]}
            if self._before and not streamed:
                self._start = start
            else:
                await self._send(start)
            return
        if self._before and message.get("body") and not message["body"].startswith(_PING):
            message, added = self._with_ids(message)
            if self._start is not None:
                self._start["headers"] = [_longer(header, added) for header in self._start["headers"]]
        if self._start is not None:
            await self._send(self._start)
            self._start = None
        await self._send(message)

    def _with_ids(self, message: Message) -> tuple[Message, int]:
        body: bytes = message["body"]
        found = body.find(self._before)
        if found < 0:
            return message, 0  # a comment of a stream, for example
        place = found + len(self._before)
        empty = body[place:].lstrip()[:1] == b"}"
        ids = b'"bpac":' + to_json(self._exchange.ids()) + (b"" if empty else b",")
        self._before = b""
        return {**message, "body": body[:place] + ids + body[place:]}, len(ids)


def _longer(header: Header, added: int) -> Header:
    name, value = header
    return (name, b"%d" % (int(value) + added)) if name == b"content-length" else header


def exchange_of(scope: Message) -> Exchange:
    """The exchange of a request."""
    found: Exchange = scope[KEY]
    return found
