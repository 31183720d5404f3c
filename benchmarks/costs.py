"""The cost of requests to a server."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of requests to one server.

    Parameters
    ----------
    server: its name.
    stream: whether answers were streamed.
    at_once: requests in flight.
    milliseconds: time to the last byte, in the median.
    per_second: requests answered per second.
    cpu: microseconds of the server's processor time per request.
    megabytes: memory in use.
    """

    server: str
    stream: bool
    at_once: int
    milliseconds: float
    per_second: float
    cpu: float
    megabytes: float
