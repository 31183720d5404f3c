"""The number of tokens that an answer used, as the answer itself reports it."""

import re

# Quotation marks within texts are escaped in JSON, so nothing that a model writes can look like this.
_TOTAL = re.compile(rb'"total_tokens"\s*:\s*(\d{1,12})')
_NO_CHOICES = re.compile(rb'"choices"\s*:\s*\[\s*\]')
_EVENT = b"data: "
# Bytes that are kept of a stream to find a count that is split between two parts.
_KEPT = 100


def total_tokens(body: bytes) -> int | None:
    """The tokens that a whole answer reports; none if it reports none.

    >>> total_tokens(b'{"usage": {"prompt_tokens": 7, "total_tokens": 9}}')
    9
    """
    found = _TOTAL.findall(body)
    return int(found[-1]) if found else None


class StreamMeter:
    """Counts the tokens of a stream as it passes.

    Parameters
    ----------
    hide_usage: whether the event with the counts is taken out, because the caller did not ask for it.
    """

    def __init__(self, *, hide_usage: bool) -> None:
        self._hide = hide_usage
        self._events = 0
        self._reported: int | None = None
        self._tail = b""

    @property
    def reported(self) -> bool:
        """Whether the stream has reported its tokens, those of the prompt included."""
        return self._reported is not None

    @property
    def tokens(self) -> int:
        """What the stream reports; until then, one token for each event."""
        return self._events if self._reported is None else self._reported

    def passed(self, part: bytes) -> bytes:
        """A part of the stream, counted, without what is taken out; the parts of hidden streams are whole events."""
        self._events += part.count(_EVENT)
        found = total_tokens(self._tail + part)
        self._tail = part[-_KEPT:]
        if found is None:
            return part
        self._reported = found
        if not self._hide:
            return part
        events = part.split(b"\n\n")
        return b"\n\n".join(event for event in events if not (_TOTAL.search(event) and _NO_CHOICES.search(event)))
