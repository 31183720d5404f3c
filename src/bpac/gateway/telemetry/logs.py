"""Logs: one JSON object a line on standard error, without keys, prompts or answers."""

import json
import logging
import sys
import time
import traceback

from bpac.errors import JournalError, SnapshotError, StoreError
from bpac.models.fields import redacted

# What every record has; the rest was given with the message.
_OWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "color_message"}


class JsonFormatter(logging.Formatter):
    """A record as one JSON object."""

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record."""
        line = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {name: value for name, value in vars(record).items() if name not in _OWN}
        if record.exc_info and record.exc_info[1] is not None:
            line["error"] = _where(record.exc_info[1])
        # Wherever the address of a server or a store comes from, a traceback included, its password is not shown.
        return redacted(json.dumps(line, default=str, ensure_ascii=False))


def _where(error: BaseException) -> str:
    """What kind of error it was, and where; its words only where they cannot quote a prompt or an answer."""
    said = f": {error}" if isinstance(error, OSError | StoreError | JournalError | SnapshotError) else ""
    frames = traceback.extract_tb(error.__traceback__)
    places = " < ".join(f"{frame.name} ({frame.filename}:{frame.lineno})" for frame in reversed(frames))
    return f"{type(error).__name__}{said} in {places}"


def log_as_json(level: str) -> None:
    """Send every log to standard error as JSON."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
