"""Where requests go and what each carries: addresses, fields laid over a caller's, secrets that stand elsewhere."""

import os
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from bpac.errors import SettingsError


def merged(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Both, objects within objects included; ``over`` wins.

    >>> merged({"a": {"b": 1, "c": 2}}, {"a": {"c": 3}})
    {'a': {'b': 1, 'c': 3}}
    """
    both = {**under, **over}
    for name in under.keys() & over.keys():
        if isinstance(under[name], Mapping) and isinstance(over[name], Mapping):
            both[name] = merged(under[name], over[name])
    return both


# Names and passwords before the host of an address, and the values of its query. Texts may be quoted, as in JSON: a
# quotation mark, and what escapes it, is no part of an address.
_USER = re.compile(r"(?<=://)[^/?#\s\"'@]*(?:@[^/?#\s\"'@]*)*@")
_QUERY_VALUE = re.compile(r"(?<=[?&])([^=?&#\s\"'\\]+)=(?:[^&#\s\"'\\]|\\[^\"'])*")


def redacted(text: str) -> str:
    """A text with the secrets of the addresses in it left out: names, passwords, and values of queries.

    >>> redacted("https://me:secret@example.org/v1?api-key=1234&x=5 is down")
    'https://***@example.org/v1?api-key=***&x=*** is down'
    """
    if "://" not in text:
        return text
    return _QUERY_VALUE.sub(r"\1=***", _USER.sub("***@", text))


def below(base_url: str, path: str) -> str:
    """The address of something below another; what follows its question mark stays at the end.

    >>> below("https://example.org/v1?api-version=2", "/chat/completions")
    'https://example.org/v1/chat/completions?api-version=2'
    """
    parts = urlsplit(base_url)
    return urlunsplit(parts._replace(path=parts.path.rstrip("/") + path))


def address(value: str, name: str) -> str:
    """The address of a server, without a slash at its end; ``name`` is what the setting is called.

    >>> address("http://127.0.0.1:8001/v1/", "base_url")
    'http://127.0.0.1:8001/v1'
    """
    if not value.startswith(("http://", "https://")):
        raise SettingsError(f"{name} must start with http:// or https://, got {redacted(value)!r}")
    try:
        parts = urlsplit(value)
        if parts.hostname and parts.port != 0:
            return value.rstrip("/")
        reason = "it names no server"
    except ValueError as error:
        reason = str(error)
    raise SettingsError(f"{name} is no address ({reason}), got {redacted(value)!r}")


def secret(value: str, name: str) -> str:
    """A text, or what the environment variable ``env:NAME`` holds; ``name`` is what the setting is called."""
    found = value
    if value.startswith("env:"):
        found = os.environ.get(value.removeprefix("env:"), "").strip()
        if not found:
            raise SettingsError(f"{name} is {value}, but that environment variable is not set or empty")
    if any(mark in found for mark in "\r\n\0"):
        raise SettingsError(f"{name} has a line break in it, and so cannot be sent: is something else in that place?")
    return found
