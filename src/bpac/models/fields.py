"""The parts of a request to a model server: URLs, headers, body fields and secrets."""

import os
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, unquote_plus, urlsplit, urlunsplit

from bpac.errors import SettingsError


def merged(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Both objects in one, nested objects included; ``over`` overrides ``under``.

    >>> merged({"a": {"b": 1, "c": 2}}, {"a": {"c": 3}})
    {'a': {'b': 1, 'c': 3}}
    """
    both = {**under, **over}
    for name in under.keys() & over.keys():
        if isinstance(under[name], Mapping) and isinstance(over[name], Mapping):
            both[name] = merged(under[name], over[name])
    return both


def merged_headers(*layers: Mapping[str, str]) -> dict[str, str]:
    """Headers in one; later ones override earlier ones, whatever the case of their names.

    >>> merged_headers({"Accept": "a", "Host": "b"}, {"accept": "c"})
    {'accept': 'c', 'Host': 'b'}
    """
    found: dict[str, tuple[str, str]] = {}
    for layer in layers:
        for name, value in layer.items():
            found[name.lower()] = name, value
    return dict(found.values())


# Names and passwords before the host of a URL, and the values of its query. The text may be quoted, as in JSON: a
# quotation mark, and what escapes it, is not part of a URL.
_USER = re.compile(r"(?<=://)[^/?#\s\"'@]*(?:@[^/?#\s\"'@]*)*@")
_QUERY_VALUE = re.compile(r"(?<=[?&])([^=?&#\s\"'\\]+)=(?:[^&#\s\"'\\]|\\[^\"'])*")


def redacted(text: str) -> str:
    """A text without the secrets in its URLs: names, passwords, and values of queries.

    >>> redacted("https://me:secret@example.org/v1?api-key=1234&x=5 is down")
    'https://***@example.org/v1?api-key=***&x=*** is down'
    """
    if "://" not in text:
        return text
    return _QUERY_VALUE.sub(r"\1=***", _USER.sub("***@", text))


def endpoint_url(base_url: str, path: str) -> str:
    """The URL of a path below a base URL; the query of the base URL stays at the end.

    >>> endpoint_url("https://example.org/v1?api-version=2", "/chat/completions")
    'https://example.org/v1/chat/completions?api-version=2'
    """
    parts = urlsplit(base_url)
    return urlunsplit(parts._replace(path=parts.path.rstrip("/") + path))


def with_query(base_url: str, query: Mapping[str, str]) -> str:
    """A base URL with further fields in its query; a field that it has already is replaced.

    >>> with_query("https://example.org/v1?a=1&b=2", {"b": "x y", "api-version": "2"})
    'https://example.org/v1?a=1&b=x%20y&api-version=2'
    """
    parts = urlsplit(base_url)
    kept = [pair for pair in parts.query.split("&") if pair and unquote_plus(pair.partition("=")[0]) not in query]
    added = [f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in query.items()]
    return urlunsplit(parts._replace(query="&".join(kept + added)))


def address(value: str, name: str) -> str:
    """The URL of a server without a slash at its end; ``SettingsError`` if it is none.

    Parameters
    ----------
    value: the URL.
    name: the name of the setting, for the error message.

    >>> address("http://127.0.0.1:8001/v1/", "base_url")
    'http://127.0.0.1:8001/v1'
    """
    if not value.startswith(("http://", "https://")):
        raise SettingsError(f"{name} must start with http:// or https://, got {redacted(value)!r}")
    try:
        parts = urlsplit(value)
        if parts.hostname and parts.port != 0:
            return urlunsplit(parts._replace(path=parts.path.rstrip("/")))
        reason = "it has no host"
    except ValueError as error:
        reason = str(error)
    raise SettingsError(f"{name} is no address ({reason}), got {redacted(value)!r}")


def secret(value: str, name: str) -> str:
    """A setting, or the value of the environment variable if it is ``env:NAME``.

    Parameters
    ----------
    value: the setting as it is written.
    name: the name of the setting, for the error message.
    """
    found = value
    if value.startswith("env:"):
        found = os.environ.get(value.removeprefix("env:"), "").strip()
        if not found:
            raise SettingsError(f"{name} is {value}, but that environment variable is not set or empty")
    if any(mark in found for mark in "\r\n\0"):
        raise SettingsError(f"{name} has a line break in it and cannot be sent in a header: check its value")
    return found
