"""Limits on the size, the number and the duration of what callers and models may send."""

import sys
from typing import Annotated

from msgspec import Meta, structs

from bpac.gateway.config.toml_tables import ConfigTable, Count, Seconds


class Limits(ConfigTable, frozen=True):
    """Limits of a gateway, set in the table ``[gateway]``.

    Parameters
    ----------
    max_head: largest request line and headers together, in bytes.
    max_headers: largest number of headers of a request.
    max_body: largest request body, in bytes.
    max_depth: deepest nesting of the JSON in a request body.
    max_values: largest number of JSON values in a request body.
    head_timeout: seconds within which the headers of a request must arrive.
    body_timeout: seconds within which the body of a request must arrive.
    send_timeout: seconds for which a caller may leave a response unread.
    max_connections: largest number of open connections.
    max_connections_per_address: largest number of open connections from one IPv4 address or IPv6 /64 network.
    max_answer: largest response of a model server, whole or streamed, in bytes.
    max_answer_values: largest number of JSON values in a response of a model server, or in one event of its stream.
    """

    max_head: Annotated[int, Meta(ge=1024)] = 64 * 2**10
    max_headers: Annotated[int, Meta(ge=10)] = 100
    max_body: Count = 20 * 2**20
    max_depth: Annotated[int, Meta(ge=1, le=500)] = 64
    max_values: Count = 100_000
    head_timeout: Seconds = 15.0
    body_timeout: Seconds = 120.0
    send_timeout: Seconds = 120.0
    max_connections: Count = 4096
    max_connections_per_address: Count = 1024
    max_answer: Count = 64 * 2**20
    max_answer_values: Count = 2_000_000

    def without_connections(self) -> "Limits":
        """The same without a limit on the number of connections."""
        return structs.replace(self, max_connections=sys.maxsize, max_connections_per_address=sys.maxsize)
