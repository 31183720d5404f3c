"""Server-sent events with a name, as other APIs than chat completions write them."""

from collections.abc import Iterable, Mapping
from typing import Any

from bpac.wire.json import to_json

Event = Mapping[str, Any]


def event_bytes(events: Iterable[Event]) -> bytes:
    r"""Events, each named by its field ``type``.

    >>> event_bytes([{"type": "ping"}])
    b'event: ping\ndata: {"type":"ping"}\n\n'
    """
    return b"".join(b"event: %b\ndata: %b\n\n" % (event["type"].encode(), to_json(event)) for event in events)
