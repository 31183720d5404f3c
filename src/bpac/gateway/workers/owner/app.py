"""The owner as an ASGI application: callers come through a front, which says where they are."""

from typing import Any

from bpac.gateway.app import Gateway
from bpac.gateway.http.asgi import Message, Receive, Send

# The header in which a front passes the address of a caller on. It removes what callers send under this name, and only
# fronts can reach the owner: its socket is in a directory that only this user may enter.
CALLER = b"x-bpac-caller-address"


class OwnerGateway(Gateway):
    """The application of the owner."""

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer a request that a front has passed on, or start and stop with the server."""
        if scope["type"] == "http":
            scope = _of_caller(scope)
        await super().__call__(scope, receive, send)


def _of_caller(scope: Message) -> Message:
    """The request as the front has got it."""
    headers: list[Any] = scope["headers"]
    address = next((value.decode("latin-1") for name, value in headers if name == CALLER), "")
    kept = [(name, value) for name, value in headers if name != CALLER]
    return {**scope, "headers": kept, "client": (address, 0) if address else None}
