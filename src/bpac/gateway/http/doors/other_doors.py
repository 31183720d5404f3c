"""The doors of the Responses API and of the Messages API."""

import os
import time
from typing import Any

from bpac.gateway.http.doors.door import Asked
from bpac.gateway.http.doors.error_formats import MESSAGES_ERRORS, RESPONSES_ERRORS, ErrorFormat
from bpac.gateway.telemetry.request_ids import CURRENT
from bpac.wire.messages import request_reading as messages
from bpac.wire.messages.event_writing import MessageWriter
from bpac.wire.responses import request_reading as responses
from bpac.wire.responses.event_writing import ResponseWriter


class ResponsesDoor:
    """OpenAI's Responses API."""

    errors: ErrorFormat = RESPONSES_ERRORS

    def read(self, body: dict[str, Any]) -> Asked:
        """The request in a body."""
        return Asked(responses.read_request(body), ResponseWriter(body, _token(), int(time.time())))


class MessagesDoor:
    """Anthropic's Messages API."""

    errors: ErrorFormat = MESSAGES_ERRORS

    def read(self, body: dict[str, Any]) -> Asked:
        """The request in a body."""
        return Asked(messages.read_request(body), MessageWriter(body, _token(), CURRENT.get()))


def _token() -> str:
    return os.urandom(12).hex()
