"""The sockets that the supervisor listens on for the other processes."""

import socket
from pathlib import Path

from bpac.errors import SettingsError
from bpac.gateway.config.file import Config

# Connections that wait to be accepted: of callers, and between processes.
BACKLOG, UNIX_BACKLOG = 2048, 1024


def listen_unix(path: Path) -> socket.socket:
    """A listening Unix socket."""
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listening.bind(str(path))
    listening.listen(UNIX_BACKLOG)
    return listening


def listen(config: Config) -> list[socket.socket]:
    """Listening sockets as the configuration says, or ``SettingsError``."""
    found: list[socket.socket] = []
    try:
        addresses = socket.getaddrinfo(
            config.host or None, config.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        for family, _, _, _, address in dict.fromkeys(addresses):
            listening = socket.socket(family, socket.SOCK_STREAM)
            found.append(listening)
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            listening.bind(address)
            listening.listen(BACKLOG)
    except OSError as error:
        for each in found:
            each.close()
        raise SettingsError(f"cannot listen on {config.listen} ({error.strerror})") from error
    return found
