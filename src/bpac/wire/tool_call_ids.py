"""Ids of tool calls that a server accepts, in place of those that another server made up."""

import re
from hashlib import blake2b
from string import ascii_letters, digits

# What the APIs other than chat completions accept.
MESSAGES_IDS = re.compile(r"[A-Za-z0-9_-]{1,64}")
RESPONSES_IDS = re.compile(r".{1,64}", re.DOTALL)

_LENGTH = 9
_ALPHABET = digits + ascii_letters


def accepted(given: str, pattern: re.Pattern[str]) -> str:
    """The id if it has an accepted form, or else another one that depends on the id only.

    The same call therefore has the same id in all messages and in all later requests of a conversation, although the
    gateway keeps nothing of a conversation. Two calls of one conversation get the same id with probability 10⁻¹⁶.

    >>> accepted("call_9fK2", MESSAGES_IDS), len(accepted("functions.add:0", MESSAGES_IDS))
    ('call_9fK2', 9)
    """
    if pattern.fullmatch(given):
        return given
    number = int.from_bytes(blake2b(given.encode("utf-8", "surrogatepass"), digest_size=16).digest())
    made = []
    for _ in range(_LENGTH):
        number, remainder = divmod(number, len(_ALPHABET))
        made.append(_ALPHABET[remainder])
    return "".join(made)
