"""Authentication: from the headers of a request to who asks."""

import asyncio
import time
from collections.abc import Iterable, Mapping
from typing import Any

from bpac.gateway.auth.addresses import network_of
from bpac.gateway.auth.failed_logins import FailedLogins
from bpac.gateway.auth.keys import ANYBODY, ApiKeys, Identity
from bpac.gateway.http.bad_request import BadRequest


class Authentication:
    """Tells who asks; wrong keys are counted by address, and slow it down.

    Parameters
    ----------
    keys: of the gateway.
    """

    def __init__(self, keys: ApiKeys) -> None:
        self.keys = keys
        self._logins = FailedLogins()

    async def identity(self, scope: Mapping[str, Any]) -> Identity:
        """Who sends a request, or ``BadRequest`` if it shows no valid key.

        Parameters
        ----------
        scope: of the request, as ASGI has it.
        """
        if not self.keys.needed:
            return ANYBODY
        key = shown_key(scope["headers"])
        found = await self.checked(key, scope) if key else None
        if found is None:
            raise BadRequest("no valid API key: send it as  Authorization: Bearer KEY", 401, code="invalid_api_key")
        return found

    async def checked(self, key: bytes, scope: Mapping[str, Any]) -> Identity | None:
        """Who has a key, said after a pause where many wrong keys came from; none if it is not one of ours."""
        address, now = network_of(address_of(scope)), time.monotonic()
        digest = self.keys.digest(key)
        found, pause = self.keys.identity(digest), self._logins.pause(address, digest, now)
        if found is None:
            self._logins.failed(address, now)
        if pause:
            await asyncio.sleep(pause)
        if found is not None:
            self._logins.accepted(address, digest)
        return found


def address_of(scope: Mapping[str, Any]) -> str:
    """The address a request comes from; empty where there is none, as on a Unix socket."""
    client = scope.get("client")
    return client[0] if client else ""


def shown_key(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """The key in the headers of a request; empty if there is none.

    >>> shown_key([(b"authorization", b"Bearer abc")])
    b'abc'
    """
    shown = next((value for name, value in headers if name == b"authorization"), b"")
    kind, _, key = shown.partition(b" ")
    return key.strip() if kind.lower() == b"bearer" else b""
