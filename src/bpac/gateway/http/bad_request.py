"""The error of a request that the gateway does not answer, with the status and the code that its caller gets."""

from collections.abc import Mapping

from bpac.errors import BpacError


class BadRequest(BpacError):
    """A request that is not answered.

    Parameters
    ----------
    message: what is wrong and what to do.
    status: the HTTP status (default: 400).
    param: the field of the request that is wrong.
    code: a word for programs.
    retry_after: seconds after which the same request may succeed.
    headers: more headers of the response (default: none).
    """

    def __init__(
        self,
        message: str,
        status: int = 400,
        param: str | None = None,
        code: str | None = None,
        retry_after: int | None = None,
        *,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.param = param
        self.code = code
        self.retry_after = retry_after
        self.headers = dict(headers or {})


def stopping() -> BadRequest:
    """The error of requests that arrive while the gateway stops."""
    return BadRequest("the gateway is shutting down", 503, code="shutting_down", retry_after=1)


def no_such_route(name: str) -> BadRequest:
    """The error of requests for a route that is not configured."""
    return BadRequest(f"there is no route {name!r}: GET /v1/models lists the routes", 404, "model", "model_not_found")


def decides_only(name: str) -> BadRequest:
    """The error of requests for a completion on a route that has no models."""
    message = f"the route {name!r} decides only, because its callers ask their models themselves: POST /v1/decide"
    return BadRequest(message, 400, "model", "decides_only")


def no_such_decision() -> BadRequest:
    """The error of requests about a decision that this gateway did not make."""
    return BadRequest("there is no such decision", 404, "decision", "unknown_decision")


def not_in_journal_yet() -> BadRequest:
    """The error of reports about a decision of another gateway, which this one has not read yet."""
    message = "the decision was just made by another gateway, and is not in the journal yet: report it again"
    return BadRequest(message, 503, "decision", "not_yet", retry_after=1)


def archived_decision() -> BadRequest:
    """The error of requests about a decision whose entries are in an archive."""
    message = "this decision is archived: its outcome is final, and its answers are not kept"
    return BadRequest(message, 409, "decision", "archived")
