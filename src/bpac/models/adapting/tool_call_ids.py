"""Ids of tool calls that a server accepts, in place of those that another server made up."""

import re
from collections.abc import Mapping
from typing import Any, Literal

from bpac.wire.tool_call_ids import MESSAGES_IDS, accepted

IdStyle = Literal["any", "mistral", "anthropic", "openai"]

# Which ids each kind of server accepts. Those that it accepts are left as they are: they may be its own.
_ACCEPTED = {
    "mistral": re.compile(r"[A-Za-z0-9]{9}"),
    "anthropic": MESSAGES_IDS,
    "openai": re.compile(r".{1,40}", re.DOTALL),
}


def accepted_id(given: str, style: IdStyle) -> str:
    """The id if the server accepts it, or else another one that depends on the id only.

    >>> accepted_id("AbCd01234", "mistral"), len(accepted_id("call_9fK2", "mistral"))
    ('AbCd01234', 9)
    """
    return given if style == "any" else accepted(given, _ACCEPTED[style])


def with_accepted_ids(message: Any, style: IdStyle) -> Any:
    """A message with accepted ids: of the calls that an answer makes, and of the call that a result belongs to."""
    if not isinstance(message, Mapping):
        return message
    changed = dict(message)
    if isinstance(message.get("tool_call_id"), str):
        changed["tool_call_id"] = accepted_id(message["tool_call_id"], style)
    if isinstance(message.get("tool_calls"), list):
        changed["tool_calls"] = [
            {**call, "id": accepted_id(call["id"], style)}
            if isinstance(call, Mapping) and isinstance(call.get("id"), str)
            else call
            for call in message["tool_calls"]
        ]
    return changed
