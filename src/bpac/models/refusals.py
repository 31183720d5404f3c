"""Refusals: statuses with which a server rejects a request because of what was asked (MATH section 13)."""

from bpac.models.retrying import LATER

# Statuses that are about the key, the account or the rate limit of the one who sends requests.
OPERATORS = LATER | {401, 402, 403, 407}


def is_refused(status: int | None) -> bool:
    """Whether a server refused a request because of what was asked.

    Parameters
    ----------
    status: the HTTP status of its response; none if there was no response.

    >>> is_refused(400), is_refused(401), is_refused(500)
    (True, False, False)
    """
    return status is not None and 400 <= status < 500 and status not in OPERATORS
