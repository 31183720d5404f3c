"""Journal entries and notes as JSON text. A store works without extras, and uses msgspec where it is installed."""

import json
from typing import Any

try:
    import msgspec
except ImportError:  # encoding takes longer then, which matters to a busy gateway only
    _encode_fast = None
else:
    _encode_fast = msgspec.json.Encoder().encode

# One is kept: ``json.dumps`` makes a new encoder for every call with other separators.
_encode_standard = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


def encode(value: Any) -> str:
    """The value as JSON text without spaces.

    >>> encode({"step": 3, "loss": 0.5})
    '{"step":3,"loss":0.5}'
    """
    return _encode_standard(value) if _encode_fast is None else _encode_fast(value).decode()
