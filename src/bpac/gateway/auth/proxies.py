"""Reverse proxies in front of the gateway: which are trusted, and what they say about a request.

Anyone can send ``X-Forwarded-Proto``. It counts only if the connection comes from a trusted proxy, and then only its
last value, which that proxy wrote itself; what a caller sent before it is ignored.
"""

import ipaddress
from collections.abc import Iterable, Mapping
from typing import Any

from bpac.errors import SettingsError
from bpac.gateway.auth.authentication import address_of

_PROTOCOL = b"x-forwarded-proto"


class TrustedProxies:
    """The proxies whose headers are believed.

    Parameters
    ----------
    addresses: IP addresses and networks, such as ``127.0.0.1`` and ``10.0.0.0/8``.

    >>> proxies = TrustedProxies(["127.0.0.1"])
    >>> headers = [(b"x-forwarded-proto", b"https")]
    >>> proxies.used_https({"scheme": "http", "client": ("127.0.0.1", 5), "headers": headers})
    True
    >>> proxies.used_https({"scheme": "http", "client": ("192.0.2.1", 5), "headers": headers})
    False
    """

    def __init__(self, addresses: Iterable[str]) -> None:
        self._networks = [_network(address) for address in addresses]

    def used_https(self, scope: Mapping[str, Any]) -> bool:
        """Whether the caller reached the gateway, or the proxy nearest to it, by HTTPS.

        Parameters
        ----------
        scope: the ASGI scope of the request.
        """
        if scope.get("scheme") == "https":
            return True
        values = [value for name, value in scope["headers"] if name == _PROTOCOL]
        if not values or not self._trusts(address_of(scope)):
            return False
        return bool(values[-1].rpartition(b",")[2].strip().lower() == b"https")

    def _trusts(self, address: str) -> bool:
        try:
            found = ipaddress.ip_address(address.partition("%")[0])
        except ValueError:
            return False
        if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
            found = found.ipv4_mapped
        return any(found in network for network in self._networks)


def _network(address: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    try:
        return ipaddress.ip_network(address)
    except ValueError as error:
        raise SettingsError(
            f"trusted_proxies: {address!r} is neither an IP address nor a network ({error}): write 10.0.0.7 or "
            "10.0.0.0/8"
        ) from error
