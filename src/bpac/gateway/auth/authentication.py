"""Authentication: from the headers of a request to the identity of its caller."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import Any

from bpac.gateway.auth.addresses import network_of
from bpac.gateway.auth.failed_logins import FailedLogins
from bpac.gateway.auth.keys import ANONYMOUS, ApiKeys, Identity
from bpac.gateway.http.bad_request import BadRequest


class Authentication:
    """Identifies callers by their API key; many wrong keys from one address delay the replies to that address.

    Parameters
    ----------
    keys: the keys of the gateway.
    logins: the wrong keys so far (default: none); a reload of the configuration does not forget them.
    """

    def __init__(self, keys: ApiKeys, logins: FailedLogins | None = None) -> None:
        self.keys = keys
        self.logins = FailedLogins() if logins is None else logins

    async def identity(self, scope: Mapping[str, Any]) -> Identity:
        """The identity of the caller, or ``BadRequest`` if the request has no valid key.

        Parameters
        ----------
        scope: the ASGI scope of the request.
        """
        if not self.keys.needed:
            return ANONYMOUS
        key = request_key(scope["headers"])
        found = await self.checked(key, scope) if key else None
        if found is None:
            message = "no valid API key: send it as  Authorization: Bearer KEY  or  x-api-key: KEY"
            raise BadRequest(message, 401, code="invalid_api_key")
        return found

    async def checked(self, key: bytes, scope: Mapping[str, Any]) -> Identity | None:
        """The identity of a key; None if it is wrong. Waits first if many wrong keys came from the same address."""
        address, now = network_of(address_of(scope)), time.monotonic()
        digest = self.keys.digest(key)
        found, pause = self.keys.identity(digest), self.logins.pause(address, digest, now)
        if found is None:
            self.logins.failed(address, now)
        if pause:
            await asyncio.sleep(pause)
        if found is not None:
            self.logins.accepted(address, digest)
        return found


def address_of(scope: Mapping[str, Any]) -> str:
    """The address that a request comes from; empty if there is none, as on a Unix socket."""
    client = scope.get("client")
    return client[0] if client else ""


def request_key(headers: Sequence[tuple[bytes, bytes]]) -> bytes:
    """The API key in the headers of a request; empty if there is none.

    OpenAI's clients send it in ``Authorization``, which counts if there are both, and Anthropic's in ``x-api-key``.

    >>> request_key([(b"authorization", b"Bearer abc")]), request_key([(b"x-api-key", b"abc")])
    (b'abc', b'abc')
    """
    value = next((value for name, value in headers if name == b"authorization"), b"")
    scheme, _, key = value.partition(b" ")
    if scheme.lower() == b"bearer":
        return key.strip()
    return next((value.strip() for name, value in headers if name == b"x-api-key"), b"")
