"""Limits on callers and models: how much, how many and how slowly, before anything of it is believed."""

from dataclasses import dataclass

from bpac.arguments import positive, whole
from bpac.gateway.config.tables import Section


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a gateway, as ``[gateway]`` sets them.

    Parameters
    ----------
    max_head: bytes of a request's first line and headers.
    max_headers: number of headers of a request.
    max_body: bytes of a request's body.
    max_depth: levels that a body's JSON may nest.
    max_values: values in a body's JSON.
    head_timeout: seconds in which the head of a request must arrive.
    body_timeout: seconds in which the body of a request must arrive.
    send_timeout: seconds for which a caller may leave an answer unread.
    max_connections: open connections of all callers.
    max_connections_per_address: open connections of one IPv4 address or IPv6 /64 network.
    max_answer: bytes of a model's answer, whole or streamed.
    max_answer_values: JSON values in a model's answer, or in one event of a stream.
    """

    max_head: int = 64 * 2**10
    max_headers: int = 100
    max_body: int = 20 * 2**20
    max_depth: int = 64
    max_values: int = 100_000
    head_timeout: float = 15.0
    body_timeout: float = 120.0
    send_timeout: float = 120.0
    max_connections: int = 4096
    max_connections_per_address: int = 1024
    max_answer: int = 64 * 2**20
    max_answer_values: int = 2_000_000

    @classmethod
    def read(cls, table: Section) -> "Limits":
        """The limits in the table ``[gateway]``."""
        standard = cls()

        def count(key: str, least: int = 1, most: int | None = None) -> int:
            return whole(table.take(key, int, getattr(standard, key)), table.at(key), least, most)

        def seconds(key: str) -> float:
            return positive(table.take(key, float, getattr(standard, key)), table.at(key))

        return cls(
            max_head=count("max_head", 1024),  # an ordinary head has some hundred bytes
            max_headers=count("max_headers", 10),
            max_body=count("max_body"),
            max_depth=count("max_depth", 1, 500),
            max_values=count("max_values"),
            head_timeout=seconds("head_timeout"),
            body_timeout=seconds("body_timeout"),
            send_timeout=seconds("send_timeout"),
            max_connections=count("max_connections"),
            max_connections_per_address=count("max_connections_per_address"),
            max_answer=count("max_answer"),
            max_answer_values=count("max_answer_values"),
        )
