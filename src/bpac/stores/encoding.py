"""Entries and notes as JSON text. Stores need no extra: they use orjson where the gateway has installed it."""

import json
from typing import Any

try:
    import orjson
except ImportError:  # slower, which matters to a busy gateway only
    orjson = None  # type: ignore[assignment]

# Kept, because ``json.dumps`` makes a new one for every call that is told how to write.
_standard = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


def encode(value: Any) -> str:
    """The value as JSON text without spaces.

    >>> encode({"step": 3, "loss": 0.5})
    '{"step":3,"loss":0.5}'
    """
    return _standard(value) if orjson is None else orjson.dumps(value).decode()
