"""The table of errors: for each kind of error, the status and the OpenAI error body that a caller gets.

=================== ================= ==================================== ==========================================
error               status            ``type`` and ``code`` of the body    cause
=================== ================= ==================================== ==========================================
``BadRequest``      its own           by status; its own code              the request, or a limit of the gateway
``UpstreamRefused`` the model's       the model server's own body          a model server refused the request
``ModelError``      502               upstream_error, upstream_failed      a model server failed, or refused our key
``StoreError``      503               server_error, store_failed           the journal cannot be written
any other           500               server_error, internal_error         a mistake in the gateway
=================== ================= ==================================== ==========================================
"""

import logging
from typing import Any, NamedTuple

from bpac.errors import ModelError, StoreError
from bpac.gateway.chat.upstreams.upstream_errors import UpstreamRefused
from bpac.gateway.http.bad_request import BadRequest
from bpac.gateway.telemetry.log_rate import LogRate
from bpac.wire.json import to_json
from bpac.wire.rendering import event

log = logging.getLogger("bpac.gateway")

# Callers repeat a request that failed, so its error is not logged each time.
_rate = LogRate()

# The ``type`` of a BadRequest, by its status (default: invalid_request_error).
_TYPES = {
    401: "authentication_error", 403: "permission_error", 429: "rate_limit_error", 502: "upstream_error",
    503: "server_error",
}  # fmt: skip


class ErrorResponse(NamedTuple):
    """An error as an HTTP response.

    Parameters
    ----------
    status: the HTTP status.
    body: JSON.
    headers: the headers, including the content type.
    """

    status: int
    body: bytes
    headers: dict[str, str]


def error_response(error: Exception) -> ErrorResponse:
    """The response to a request that ended in an error."""
    if isinstance(error, UpstreamRefused) and error.status is not None:
        body, retry_after = error.body or to_json(_refused_by_model(error.status)), error.retry_after
        return ErrorResponse(error.status, body, _headers(retry_after))
    status, document = status_and_body(error)
    wait, more = (error.retry_after, error.headers) if isinstance(error, BadRequest) else (None, {})
    return ErrorResponse(status, to_json(document), _headers(None if wait is None else str(wait)) | more)


def error_event(error: Exception) -> bytes:
    """The last event of a stream that fails after its first event."""
    return event(status_and_body(error)[1])


def status_and_body(error: Exception) -> tuple[int, dict[str, Any]]:
    """The HTTP status of an error and its body, as JSON values."""
    if isinstance(error, BadRequest):
        kind = _TYPES.get(error.status, "invalid_request_error")
        return error.status, error_body(str(error), kind, error.param, error.code)
    if isinstance(error, ModelError):
        # Callers need not know where the models are. Operators have read about the failed attempts in the log.
        status = f" (status {error.status})" if error.status else ""
        return 502, error_body(f"the model gave no usable answer{status}", "upstream_error", code="upstream_failed")
    if isinstance(error, StoreError):
        if times := _rate.count(error.cause):
            known = {"cause": error.cause, "remedy": error.remedy, "since_last_line": times}
            log.error("request failed: the store cannot be used", extra=known | {"error": str(error)})
        return 503, error_body("the journal cannot be written", "server_error", code="store_failed")
    log.error("unexpected error", exc_info=error)
    return 500, error_body("internal error", "server_error", code="internal_error")


def error_body(message: str, kind: str, param: str | None = None, code: str | None = None) -> dict[str, Any]:
    """OpenAI's error body, as JSON values."""
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def _refused_by_model(status: int) -> dict[str, Any]:
    message = f"the model's server refused the request (status {status})"
    return error_body(message, "invalid_request_error", code="upstream_refused")


def _headers(retry_after: str | None) -> dict[str, str]:
    headers = {"content-type": "application/json"}
    return headers if retry_after is None else headers | {"retry-after": retry_after}
