"""Server-sent events, read from bytes that arrive in parts of any size."""

from bpac.errors import AnswerError

# Bytes of an unfinished line or event after which the stream is taken for something else. No server writes as many.
LONGEST_EVENT = 16 * 2**20

_PREFIX = b"data: "
_RETURN, _NEWLINE = b"\r\n"  # as numbers: ``in`` finds a number in an eighth of the time that it finds bytes


class SseReader:
    r"""Reads the data of server-sent events.

    Nearly all servers write each event as one line ``data: …`` followed by an empty line. Such events are split off
    without a look at each line. From the first comment, other field or carriage return on, the stream is read line by
    line.

    >>> reader = SseReader()
    >>> reader.feed(b'data: {"a"'), reader.feed(b': 1}\n\ndata: [DONE]\n\n')
    ([], [b'{"a": 1}', b'[DONE]'])
    """

    def __init__(self) -> None:
        self._rest = bytearray()  # the unfinished event, or the unfinished line once lines are read
        self._data = bytearray()  # the data lines of the unfinished event, each after a newline
        self._reads_lines = False
        self._after_return = False

    def feed(self, data: bytes) -> list[bytes]:
        """The data of every event that is complete now; ``AnswerError`` if these are not server-sent events."""
        if not self._reads_lines:
            plain = _RETURN not in data
            whole = plain and not self._rest and data.startswith(_PREFIX) and data.endswith(b"\n\n")
            if whole and data.find(b"\n") == len(data) - 2:
                return [data[6:-2]]  # one event by itself, as events come while a model writes
            if plain and _NEWLINE not in data:
                # Added in place and not searched: an event in many parts would take time in the square of their number.
                self._rest += data
                return self._limited([])
            found = bytes(self._rest) + data if self._rest else data
            *events, rest = found.split(b"\n\n")
            # The rest may end in a newline, the first of the two that end an event, and have no other.
            plain = plain and rest.find(b"\n", 0, -1) < 0
            if plain and (not events or _are_data_lines(found, len(events), rest)):
                self._rest = bytearray(rest)
                return self._limited([event[6:] for event in events])
            self._reads_lines, data = True, found
            self._rest.clear()
        return self._limited(self._feed_lines(data))

    def _feed_lines(self, data: bytes) -> list[bytes]:
        if not data:
            return []
        # A line ends in \r, \n or both. The first of both ends it at once, because the other may never come.
        lines = (data.removeprefix(b"\n") if self._after_return else data).splitlines()
        self._after_return = data.endswith(b"\r")
        rest = b"" if data.endswith((b"\r", b"\n")) else lines.pop()
        if lines and self._rest:
            lines[0] = bytes(self._rest) + lines[0]
            self._rest.clear()
        self._rest += rest
        return [event for line in lines if (event := self._line(line)) is not None]

    def _line(self, line: bytes) -> bytes | None:
        """The event that the line ends, if it ends one. Comments and other fields are skipped."""
        if line.startswith(b"data:"):
            self._data += b"\n"
            self._data += line[6:] if line.startswith(_PREFIX) else line[5:]
        if line or not self._data:
            return None
        event = bytes(self._data[1:])
        self._data.clear()
        return event

    def _limited(self, events: list[bytes]) -> list[bytes]:
        if len(self._data) + len(self._rest) > LONGEST_EVENT:
            endless = "an event" if self._data else "a line"
            raise AnswerError(f"the stream has {endless} without end: these are not server-sent events")
        return events


def _are_data_lines(found: bytes, count: int, rest: bytes) -> bool:
    """Whether each of ``count`` events before the rest is one line of data, found by counting."""
    starts = found.startswith(_PREFIX) + found.count(b"\n\ndata: ")
    newlines = found.count(b"\n") - rest.count(b"\n")
    return starts == count + rest.startswith(_PREFIX) and newlines == 2 * count
