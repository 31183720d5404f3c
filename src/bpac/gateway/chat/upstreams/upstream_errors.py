"""How a model server can fail a request: it refuses it, refuses the gateway's key, or is busy."""

from bpac.errors import Refused, Unavailable
from bpac.models.retrying import Failed
from bpac.wire.json import from_strict_json


class UpstreamRefused(Refused):
    """The server refused the request, and the caller gets the server's own error.

    Parameters
    ----------
    message: which server refused, and with which status.
    status: the server's status.
    body: the JSON object it sent; empty if it sent something else.
    retry_after: its ``Retry-After`` header.
    fields: the request fields that the server named (default: none).
    """

    def __init__(
        self, message: str, status: int, body: bytes, retry_after: str | None, fields: tuple[str, ...] = ()
    ) -> None:
        super().__init__(message, status)
        self.body = body
        self.retry_after = retry_after
        self.fields = fields


class CredentialsRefused(Unavailable):
    """The server does not accept the gateway's own key.

    Parameters
    ----------
    message: which server.
    replied: the server's status; it is not this error's own, because callers must not take it for theirs.
    """

    def __init__(self, message: str, replied: int) -> None:
        super().__init__(message)
        self.replied = replied


class Busy(Failed):
    """An attempt that the server answered with an error which may pass."""

    refusal: UpstreamRefused


def json_object(data: bytes) -> bytes:
    """The data if it is a JSON object, and nothing otherwise: only JSON is passed on to callers.

    >>> json_object(b'{"error": {}}'), json_object(b"<html>")
    (b'{"error": {}}', b'')
    """
    try:
        return data if isinstance(from_strict_json(data), dict) else b""
    except ValueError:
        return b""
