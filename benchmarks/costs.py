"""What a server costs those who ask it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cost:
    """What requests to one server cost.

    Parameters
    ----------
    server: which.
    stream: whether answers came in pieces.
    at_once: requests in flight.
    milliseconds: to the last byte, in the median.
    per_second: requests answered.
    cpu: microseconds of the server's processor time per request.
    megabytes: of memory held.
    """

    server: str
    stream: bool
    at_once: int
    milliseconds: float
    per_second: float
    cpu: float
    megabytes: float
