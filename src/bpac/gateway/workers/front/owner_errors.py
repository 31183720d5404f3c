"""Errors of requests whose owner of the journals cannot be reached, or that the owner reports."""

from typing import Any

from bpac.errors import BpacError, InputError, StoreError
from bpac.gateway.http.bad_request import BadRequest

CAUSE = "the process that owns the journal does not answer"
REMEDY = "it is started again by itself; if it is not, the log says why it ended"


class OwnerLost(StoreError):
    """The owner of the journals cannot be reached."""

    def __init__(self, message: str = "the owner of the journal cannot be reached") -> None:
        super().__init__(message, cause=CAUSE, remedy=REMEDY)


class OwnerLate(OwnerLost):
    """The owner of the journals did not answer in time; it may still do what it was asked for."""


class ConfigurationChanged(StoreError):
    """The game is not open in the owner any more, because the configuration has changed."""


def error_in(values: list[Any]) -> Exception:
    """The error in a reply."""
    kind, message, *details = values
    if kind == "bad_request":
        *plain, headers = details
        return BadRequest(message, *plain, headers=headers)
    if kind == "store":
        cause, remedy = details
        return StoreError(message, cause=cause, remedy=remedy)
    if kind == "unknown_game":
        return ConfigurationChanged(
            "the configuration has changed", cause="the configuration has changed", remedy="ask again"
        )
    return InputError(message) if message.startswith("InputError") else BpacError(message)
