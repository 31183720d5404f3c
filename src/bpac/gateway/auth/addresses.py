"""Addresses of callers, grouped so that one caller cannot appear as many."""

import ipaddress
from functools import lru_cache

# Connections without an address (Unix sockets) are counted under this name.
LOCAL = "local"


@lru_cache(maxsize=4096)
def network_of(address: str) -> str:
    """The unit that limits count: an IPv4 address, or the /64 network of an IPv6 address, which has one owner.

    >>> network_of("192.0.2.1"), network_of("2001:db8::1"), network_of("::ffff:192.0.2.1")
    ('192.0.2.1', '2001:db8::/64', '192.0.2.1')
    """
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address or LOCAL
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped is not None:
            return str(found.ipv4_mapped)
        if not found.is_loopback:
            return str(ipaddress.ip_network((found, 64), strict=False))
    return str(found)
