"""The segment of a request: which of a route's games it belongs to."""

import hashlib
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from bpac.gateway.chat.request import ChatRequest
from bpac.gateway.config.routes.routes import RouteSettings

# The segment of requests that do not name one.
UNNAMED = "(none)"
LONGEST_NAME = 200


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sends a request, as far as its segment depends on it.

    Parameters
    ----------
    segment: the segment of the caller's API key; empty on an open gateway.
    headers: of the request, with their names in lower case.
    """

    segment: str = ""
    headers: Sequence[tuple[bytes, bytes]] = field(default=(), repr=False)

    def header(self, name: str) -> str | None:
        """The value of a header, in UTF-8 or else in Latin-1; none if it is missing."""
        wanted = name.lower().encode("latin-1", "replace")
        value = next((value for key, value in self.headers if key == wanted), None)
        if value is None:
            return None
        try:
            return value.decode()
        except UnicodeDecodeError:
            return value.decode("latin-1")


def segment_of(by: str, request: ChatRequest, caller: Caller, label: str) -> str:
    """The value that a request has for a setting such as ``segment_by``.

    Parameters
    ----------
    by: where the value is.
    request: what is asked.
    caller: who asks.
    label: what follows the route's name and a colon in the request's ``model``.
    """
    kind, _, name = by.partition(":")
    value: Any
    if kind == "header":
        value = caller.header(name)
    elif kind == "metadata":
        metadata = request.body.get("metadata")
        value = metadata.get(name) if isinstance(metadata, dict) else None
    elif kind == "user":
        value = request.body.get("user")
    elif kind == "model":
        value = label
    else:
        value = caller.segment
    if not isinstance(value, str) or not value:
        return UNNAMED
    value = normalized(value)
    # A name that is too long to keep is still a segment of its own.
    return value if len(value) <= LONGEST_NAME else hashlib.sha256(value.encode()).hexdigest()


def normalized(name: str) -> str:
    """A name as it is kept: accents may be written in two ways that look the same.

    >>> normalized("Mu\u0308nchen") == "M\u00fcnchen"
    True
    """
    # Half of a surrogate pair is not text that can be kept.
    return unicodedata.normalize("NFC", name).encode("utf-8", "replace").decode()


def session_of(route: RouteSettings, request: ChatRequest, caller: Caller, label: str) -> str:
    """The session of a request, as ``sticky_by`` of its route names it; empty if it names none."""
    session = segment_of(route.sticky_by, request, caller, label) if route.sticky_by is not None else UNNAMED
    return "" if session == UNNAMED else session


def task_of(route: RouteSettings, request: ChatRequest, caller: Caller, label: str) -> str:
    """The task of a request, as ``task_by`` of its route names it; empty if it names none."""
    task = segment_of(route.task_by, request, caller, label) if route.task_by is not None else UNNAMED
    return "" if task == UNNAMED else task
