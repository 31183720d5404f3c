"""Requests that cannot be answered, and why."""

from bpac.errors import BpacError


class BadRequest(BpacError):
    """A request that cannot be answered, and whose fault that is.

    Parameters
    ----------
    message: what was wrong and what to do.
    status: the HTTP status.
    param: the field.
    code: a word for programs.
    retry_after: seconds after which it may work.
    """

    def __init__(
        self,
        message: str,
        status: int = 400,
        param: str | None = None,
        code: str | None = None,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.param = param
        self.code = code
        self.retry_after = retry_after


def stopping() -> BadRequest:
    """Why a request is not answered while the gateway stops."""
    return BadRequest("the gateway is shutting down", 503, code="shutting_down", retry_after=1)


def no_such_route(name: str) -> BadRequest:
    """Why a route cannot be asked, or told of."""
    return BadRequest(f"there is no route {name!r}: ask /v1/models", 404, "model", "model_not_found")


def no_such_decision() -> BadRequest:
    """Why nothing can be said of a decision."""
    return BadRequest("there is no such decision", 404, "decision", "unknown_decision")
