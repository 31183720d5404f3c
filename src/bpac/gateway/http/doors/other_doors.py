"""The doors of the Responses API and of the Messages API."""

import os
import time
from typing import Any

from bpac.errors import RequestError
from bpac.gateway.http.doors.door import Asked, Headers
from bpac.gateway.http.doors.error_formats import MESSAGES_ERRORS, RESPONSES_ERRORS, ErrorFormat
from bpac.gateway.telemetry.request_ids import CURRENT
from bpac.wire.messages import request_reading as messages
from bpac.wire.messages.event_writing import MessageWriter
from bpac.wire.originals import ORIGINAL
from bpac.wire.responses import request_reading as responses
from bpac.wire.responses.event_writing import ResponseWriter

BETA = "anthropic-beta"


class ResponsesDoor:
    """OpenAI's Responses API."""

    errors: ErrorFormat = RESPONSES_ERRORS

    def read(self, body: dict[str, Any], headers: Headers) -> Asked:
        """The request in a body."""
        return Asked(responses.read_request(body), ResponseWriter(body, _token(), int(time.time())))


class MessagesDoor:
    """Anthropic's Messages API."""

    errors: ErrorFormat = MESSAGES_ERRORS

    def read(self, body: dict[str, Any], headers: Headers) -> Asked:
        """The request in a body, and the header in which features of the API are named that it uses."""
        chat = messages.read_request(body)
        if named := [value.decode("latin-1") for name, value in headers if name == BETA.encode()]:
            chat[ORIGINAL]["headers"] = {BETA: ", ".join(named)}
            if not chat[ORIGINAL]["headers"][BETA].isprintable():
                raise RequestError(f"{BETA} must be a list of names", BETA)
        return Asked(chat, MessageWriter(body, _token(), CURRENT.get()))


def _token() -> str:
    return os.urandom(12).hex()
