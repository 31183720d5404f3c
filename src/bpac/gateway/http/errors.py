"""Failures as callers see them: OpenAI's error body, and a status that says whose fault it is."""

import logging
from typing import Any, NamedTuple

from bpac.errors import ModelError, StoreError
from bpac.gateway.chat.upstream import UpstreamRefused
from bpac.gateway.http.bad_request import BadRequest
from bpac.wire.json import to_json
from bpac.wire.rendering import event

log = logging.getLogger("bpac.gateway")

_KINDS = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error", 503: "server_error"}


class ErrorResponse(NamedTuple):
    """A reply that says no.

    Parameters
    ----------
    status: the HTTP status.
    body: its body.
    headers: its headers, with that of the content's type.
    """

    status: int
    body: bytes
    headers: dict[str, str]


def failure_of(error: Exception) -> ErrorResponse:
    """The reply to a request that ended in an error."""
    if isinstance(error, UpstreamRefused) and error.status is not None:
        body = error.body or to_json(
            error_body(
                f"the model's server refused the request (status {error.status})",
                "invalid_request_error",
                code="upstream_refused",
            )
        )
        return ErrorResponse(error.status, body, _with_wait({"content-type": "application/json"}, error.retry_after))
    status, document = described(error)
    headers = {"content-type": "application/json"}
    wait = error.retry_after if isinstance(error, BadRequest) else None
    return ErrorResponse(status, to_json(document), _with_wait(headers, None if wait is None else str(wait)))


def error_event(error: Exception) -> bytes:
    """The last event of a stream that fails after its beginning."""
    return event(described(error)[1])


def described(error: Exception) -> tuple[int, dict[str, Any]]:
    """The status of an error, and its body."""
    if isinstance(error, BadRequest):
        kind = _KINDS.get(error.status, "invalid_request_error")
        return error.status, error_body(str(error), kind, error.param, error.code)
    if isinstance(error, ModelError):
        # Callers need not know where the models are; operators read it in the log.
        log.warning("model failed", extra={"error": str(error)})
        status = f" (status {error.status})" if error.status else ""
        return 502, error_body(f"the model gave no usable answer{status}", "upstream_error", code="upstream_failed")
    if isinstance(error, StoreError):
        return 503, error_body("the journal cannot be written", "server_error", code="store_failed")
    log.error("unexpected error", exc_info=error)
    return 500, error_body("internal error", "server_error", code="internal_error")


def error_body(message: str, kind: str, param: str | None = None, code: str | None = None) -> dict[str, Any]:
    """OpenAI's error body."""
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def _with_wait(headers: dict[str, str], retry_after: str | None) -> dict[str, str]:
    return headers if retry_after is None else headers | {"retry-after": retry_after}
