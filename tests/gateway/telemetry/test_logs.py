"""Logs are JSON, and contain no prompts and no answers."""

import json
import logging

from bpac.errors import AnswerError
from bpac.gateway.telemetry.logs import JsonFormatter
from bpac.stores import StoreError


def _logged(error: Exception) -> dict[str, str]:
    try:
        raise error
    except type(error) as caught:
        record = logging.makeLogRecord({"msg": "failed", "levelname": "ERROR", "name": "bpac", "decision": "dec-1"})
        record.exc_info = (type(caught), caught, caught.__traceback__)
    line: dict[str, str] = json.loads(JsonFormatter().format(record))
    return line


def test_a_line_is_one_json_object() -> None:
    """With time, level, message, and the values that were given with it."""
    line = _logged(StoreError("disk full"))
    assert (line["level"], line["message"], line["decision"]) == ("error", "failed", "dec-1")
    assert line["time"].endswith("Z")
    assert "StoreError: disk full in _logged" in line["error"]


def test_errors_are_logged_without_quoting_answers() -> None:
    """Only their type and place are logged if their message might quote a model."""
    assert "secret" not in json.dumps(_logged(AnswerError("not a chat completion: my secret")))
