"""Journal entries and notes as JSON text."""

from typing import Any

from msgspec.json import Encoder

# One is kept: ``msgspec.json.encode`` would make a new encoder for every call.
_encode = Encoder().encode


def encode(value: Any) -> str:
    """The value as JSON text without spaces.

    >>> encode({"step": 3, "loss": 0.5})
    '{"step":3,"loss":0.5}'
    """
    return _encode(value).decode()
