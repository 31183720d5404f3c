"""The names of replicas: the machine that each runs on, so that an operator sees who folds, and something unique."""

import re
import secrets
import socket

# Names stand in scripts between bars and spaces: only these characters, and not many of them.
_OTHERS, LONGEST = re.compile(r"[^A-Za-z0-9.-]+"), 63


def new_name(host: str | None = None) -> str:
    """A name that no process ever had.

    Parameters
    ----------
    host: the name of the machine or the container (default: as the system says).

    >>> new_name("bpac|7 é").rpartition("-")[0]
    'bpac-7'
    """
    machine = _OTHERS.sub("-", socket.gethostname() if host is None else host).strip("-")[:LONGEST]
    return f"{machine or 'gateway'}-{secrets.token_hex(8)}"
