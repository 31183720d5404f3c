"""How a model server is reached: through a proxy that the environment names, and with which certificates."""

import ipaddress
import ssl
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import urlsplit
from urllib.request import getproxies_environment, proxy_bypass

from bpac.errors import SettingsError
from bpac.models.fields import redacted


class Via(NamedTuple):
    """The way to a server.

    Parameters
    ----------
    proxy: the URL of an HTTP proxy; none for a direct connection.
    tls: the certificates that are trusted; none for those of the system.
    """

    proxy: str | None = None
    tls: ssl.SSLContext | None = None


DIRECTLY = Via()


def via(url: str, ca_file: str | None = None) -> Via:
    """The way to a server.

    Parameters
    ----------
    url: the URL of the server.
    ca_file: a file with certificates (PEM) that are trusted in addition to those of the system (default: none).
    """
    return Via(proxy_for(url), trusting(ca_file) if ca_file else None)


def proxy_for(url: str) -> str | None:
    """The proxy that ``HTTP_PROXY``, ``HTTPS_PROXY``, ``ALL_PROXY`` and ``NO_PROXY`` name for a URL; none for none.

    Loopback addresses are never reached through a proxy: to a proxy they would mean its own machine.
    """
    parts, proxies = urlsplit(url), getproxies_environment()
    host = parts.hostname or ""
    found = proxies.get(parts.scheme) or proxies.get("all")
    if not found or _is_loopback(host) or proxy_bypass(parts.netloc.rpartition("@")[2]):
        return None
    proxy = found if "://" in found else f"http://{found}"
    if urlsplit(proxy).scheme not in ("http", "https") or not urlsplit(proxy).hostname:
        raise SettingsError(
            f"the proxy for {host} must be http://HOST:PORT, got {redacted(proxy)}: correct the environment variable "
            f"{parts.scheme.upper()}_PROXY, or exempt the host in NO_PROXY"
        )
    return proxy


@lru_cache(maxsize=64)
def _trusting(ca_file: str, changed: int) -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.load_verify_locations(ca_file)
    return context


def trusting(ca_file: str) -> ssl.SSLContext:
    """A TLS context that trusts the certificates of a file and of the system, or ``SettingsError``."""
    try:
        # One context for all models with the same file, so that they share connections.
        with open(ca_file, "rb") as file:
            changed = hash(file.read())
        return _trusting(ca_file, changed)
    except (OSError, ssl.SSLError) as error:
        reason = "it has no certificate in PEM format" if isinstance(error, ssl.SSLError) else error.strerror
        raise SettingsError(f"{ca_file} cannot be used ({reason}): give a file with certificates") from error


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
