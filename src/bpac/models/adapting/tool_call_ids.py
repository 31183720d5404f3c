"""Ids of tool calls that a server accepts, in place of those that another server made up."""

import re
from collections.abc import Mapping
from hashlib import blake2b
from string import ascii_letters, digits
from typing import Any, Literal

IdStyle = Literal["any", "mistral", "anthropic", "openai"]

# Which ids each kind of server accepts. Those that it accepts are left as they are: they may be its own.
_ACCEPTED = {
    "mistral": re.compile(r"[A-Za-z0-9]{9}"),
    "anthropic": re.compile(r"[A-Za-z0-9_-]{1,64}"),
    "openai": re.compile(r".{1,40}", re.DOTALL),
}
_LENGTH = 9
_ALPHABET = digits + ascii_letters


def accepted_id(given: str, style: IdStyle) -> str:
    """The id if the server accepts it, or else another one that depends on the id only.

    The same call therefore has the same id in all messages and in all later requests of a conversation, although the
    gateway keeps nothing of a conversation. Two calls of one conversation get the same id with probability 10⁻¹⁶.

    >>> accepted_id("AbCd01234", "mistral"), len(accepted_id("call_9fK2", "mistral"))
    ('AbCd01234', 9)
    """
    if style == "any" or _ACCEPTED[style].fullmatch(given):
        return given
    number = int.from_bytes(blake2b(given.encode("utf-8", "surrogatepass"), digest_size=16).digest())
    made = []
    for _ in range(_LENGTH):
        number, remainder = divmod(number, len(_ALPHABET))
        made.append(_ALPHABET[remainder])
    return "".join(made)


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
