"""Logs: one JSON object per line on standard error, without keys, prompts or answers."""

import json
import logging
import sys
import time
import traceback

from bpac.errors import JournalError, SnapshotError, StoreError
from bpac.gateway.telemetry.request_ids import CURRENT
from bpac.models.fields import redacted

# The attributes that every record has; all others were given with the message.
_OWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "color_message"}


class JsonFormatter(logging.Formatter):
    """Writes a record as one JSON object."""

    def format(self, record: logging.LogRecord) -> str:
        """The line for a record."""
        line = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if request := CURRENT.get():
            line["request"] = request
        line |= {name: value for name, value in vars(record).items() if name not in _OWN}
        if record.exc_info and record.exc_info[1] is not None:
            line["error"] = _where(record.exc_info[1])
        # An address of a server or a store may be anywhere in a record, tracebacks included.
        return redacted(json.dumps(line, default=str, ensure_ascii=False))


def _where(error: BaseException) -> str:
    """The type of an error and where it was raised; its message only if it cannot quote a prompt or an answer."""
    message = f": {error}" if isinstance(error, OSError | StoreError | JournalError | SnapshotError) else ""
    frames = traceback.extract_tb(error.__traceback__)
    places = " < ".join(f"{frame.name} ({frame.filename}:{frame.lineno})" for frame in reversed(frames))
    return f"{type(error).__name__}{message} in {places}"


def log_as_json(level: str) -> None:
    """Write all logs to standard error as JSON.

    Parameters
    ----------
    level: the least severe level that is written: debug, info, warning or error.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
