"""The errors of requests that a limit of their key does not allow."""

from bpac.gateway.http.bad_request import BadRequest


def used_up(owner: str, most: int, what: str, wait: int) -> BadRequest:
    """The error of a request beyond a budget.

    Parameters
    ----------
    owner: the tenant.
    most: how many it may use per day.
    what: ``requests`` or ``tokens``.
    wait: seconds until the next day.
    """
    message = f"the budget of {owner} is used up: {most} {what} per day; the next day begins in {wait} s"
    return BadRequest(message, 429, code="insufficient_quota", retry_after=wait)


def too_fast(owner: str, most: int, what: str, wait: int) -> BadRequest:
    """The error of a request beyond a rate limit; its headers are those of OpenAI's API.

    Parameters
    ----------
    owner: the tenant.
    most: how many it may use in any 60 seconds.
    what: ``requests`` or ``tokens``.
    wait: seconds until the next request may be sent.

    >>> error = too_fast("team", 60, "requests", 7)
    >>> error.code, error.retry_after, error.headers["x-ratelimit-reset-requests"]
    ('rate_limit_exceeded', 7, '7s')
    """
    message = f"the rate limit of {owner} is reached: {most} {what} per minute; try again in {wait} s"
    headers = {
        f"x-ratelimit-limit-{what}": str(most),
        f"x-ratelimit-remaining-{what}": "0",
        f"x-ratelimit-reset-{what}": f"{wait}s",
    }
    return BadRequest(message, 429, code="rate_limit_exceeded", retry_after=wait, headers=headers)
