"""JSON as callers and model servers send it, and as it is sent to them."""

import json
import re
from typing import Any

import msgspec

from bpac.errors import AnswerError

# What msgspec raises for a text that it cannot decode.
UNDECODABLE = (msgspec.DecodeError, UnicodeError, RecursionError)

# One of each is kept: a call of ``msgspec.json.decode`` would make a new decoder.
_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode

# A string, closed or not, or a character that a value may follow. Each byte is looked at once: linear time.
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*+"?|[\[{,]', re.DOTALL)
_QUOTE = ord('"')


def from_strict_json(data: bytes) -> Any:
    """The value of a JSON text; ``ValueError`` if it is not JSON, or nested too deeply to be read.

    >>> from_strict_json(b'{"a": 18446744073709551616}')
    {'a': 18446744073709551616}
    """
    try:
        return _decode(data)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except UNDECODABLE as error:
        raise ValueError(str(error)) from None


def from_json(data: bytes) -> Any:
    r"""The value of a JSON text from a model server, or ``AnswerError``.

    What servers written in Python send although JSON does not allow it is read as well: ``NaN``, ``Infinity``, lone
    surrogates, and bytes that are not UTF-8, which are replaced.

    >>> from_json(b'["\\ud83d", NaN]')
    ['\ud83d', nan]
    """
    try:
        return _decode(data)
    except UNDECODABLE:
        pass
    try:
        return json.loads(data.decode("utf-8", errors="replace"))
    except (ValueError, RecursionError) as error:
        raise AnswerError(f"not JSON ({error})") from error


def to_json(value: Any) -> bytes:
    r"""A value as JSON text without spaces. Lone surrogates are escaped; NaN and infinities become null.

    >>> to_json(["\ud83d", 2**64, float("nan")])
    b'["\\ud83d",18446744073709551616,null]'
    """
    try:
        return _encode(value)
    except (UnicodeEncodeError, RecursionError):
        pass
    try:
        # Python escapes lone surrogates, but writes NaN: that is replaced on the way back.
        finite = json.loads(json.dumps(value), parse_constant=lambda _: None)
        return json.dumps(finite, separators=(",", ":")).encode()
    except RecursionError as error:
        raise AnswerError("the value is nested too deeply to be written as JSON") from error


def more_values_than(data: bytes, most: int) -> bool:
    """Whether a JSON text has more values than allowed, found without decoding it.

    A short text can take much memory once it is decoded. Commas and opening brackets outside strings are counted; an
    empty list or object counts twice.

    Parameters
    ----------
    data: the text. The result for a text that is not JSON is arbitrary.
    most: the number of values allowed.

    >>> more_values_than(b'[1, 2, "a, b, c"]', 4), more_values_than(b'[1, 2, "a, b, c"]', 3)
    (False, True)
    """
    # A value and its comma are two bytes at least, and brackets and commas within strings can only add to the count.
    if len(data) < 2 * most or data.count(b",") + data.count(b"[") + data.count(b"{") < most:
        return False
    left, strings = most - 1, 2 * most
    for token in _TOKEN.finditer(data):
        if data[token.start()] == _QUOTE:
            strings -= 1
            if strings < 0:  # a value comes with two strings at most: its key and itself
                return True
        elif left == 0:
            return True
        else:
            left -= 1
    return False
