"""How many values a JSON text holds, without making any of them: a short text can unfold to much memory."""

import re

# A text in quotes, closed or not, or a mark that a value may follow. Each byte is looked at once: linear time.
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*+"?|[\[{,]', re.DOTALL)
_QUOTE = ord('"')


def more_values_than(data: bytes, most: int) -> bool:
    """Whether a JSON text has more values than allowed: commas and opening brackets outside texts are counted.

    An empty list or object counts twice.

    Parameters
    ----------
    data: the text; what is no JSON may get either answer.
    most: the number of values allowed.

    >>> more_values_than(b'[1, 2, "a, b, c"]', 4), more_values_than(b'[1, 2, "a, b, c"]', 3)
    (False, True)
    """
    # A value and its comma are two bytes at least, and text inside quotes can only add to the marks.
    if len(data) < 2 * most or data.count(b",") + data.count(b"[") + data.count(b"{") < most:
        return False
    left, texts = most - 1, 2 * most
    for token in _TOKEN.finditer(data):
        if data[token.start()] == _QUOTE:
            texts -= 1
            if texts < 0:  # no value has more texts than its key and itself
                return True
        elif left == 0:
            return True
        else:
            left -= 1
    return False
