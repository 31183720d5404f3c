"""The id of the request that is being answered: sent to the caller, and written with every line of the log about it."""

import os
import re
from collections.abc import Iterable
from contextvars import ContextVar

HEADER = b"x-request-id"

# The id of the request that the current task answers; empty in tasks that answer none. Tasks that a request starts,
# such as its audit, inherit it.
CURRENT: ContextVar[str] = ContextVar("bpac_request_id", default="")

# What is accepted as an id of the caller: it is repeated in a header and in the log.
_ID = re.compile(rb"[A-Za-z0-9._:@/+=-]{1,128}")


def request_id(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """The id in the headers of a request, or a new one if there is none that can be used.

    >>> request_id([(b"x-request-id", b"abc-1")])
    b'abc-1'
    >>> request_id([(b"x-request-id", b"two words")]).startswith(b"req-")
    True
    """
    for name, value in headers:
        if name == HEADER and _ID.fullmatch(value):
            return value
    return new_request_id()


def new_request_id() -> bytes:
    """An id that no other request has."""
    return b"req-" + os.urandom(12).hex().encode()
