"""Listening sockets that outlive a process: inherited at the start, and handed over at a restart in place.

A journal has one writer, so two gateways on one store cannot overlap. Instead the socket stays open: while one process
stops and the next one starts, the system accepts connections and keeps them waiting, and none is refused.

1. A process inherits sockets as systemd passes them (socket activation): ``LISTEN_FDS`` says how many, from
   descriptor 3 on, and ``LISTEN_PID`` for which process.
2. A restart in place stops the gateway as usual, and then replaces the process by a new one with the same command,
   process id and sockets.
"""

import ipaddress
import os
import socket
import sys
from collections.abc import Sequence
from typing import NoReturn

from bpac.errors import SettingsError
from bpac.gateway.config.file import Config
from bpac.gateway.health.machine_checks import check_address, check_store

# The first descriptor that is passed on.
FIRST = 3
# Descriptors from here on are free for copies.
_ABOVE = 100
# What ``listen`` was in the process that handed its sockets over.
_LISTEN = "BPAC_LISTEN"


def inherited_sockets(config: Config) -> list[socket.socket]:
    """The listening sockets that this process has inherited; none if it has to open its own.

    Parameters
    ----------
    config: the configuration. A gateway without keys refuses sockets that other machines can reach.
    """
    count, pid = os.environ.pop("LISTEN_FDS", ""), os.environ.pop("LISTEN_PID", "")
    os.environ.pop("LISTEN_FDNAMES", None)
    before = os.environ.pop(_LISTEN, config.listen)
    if not count.isdigit() or pid != str(os.getpid()):
        return []
    found = [_listening(FIRST + number) for number in range(int(count))]
    if before != config.listen:  # a restart with another address
        for each in found:
            each.close()
        return []
    for each in found:
        if config.open and not _is_local(each):
            raise SettingsError(
                f"the inherited socket {each.getsockname()} can be reached by other machines, and this gateway has no "
                "keys: add keys, or pass a socket on 127.0.0.1"
            )
    return found


def _listening(descriptor: int) -> socket.socket:
    try:
        os.set_inheritable(descriptor, False)
        found = socket.socket(fileno=descriptor)
        if found.type == socket.SOCK_STREAM and found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            found.setblocking(False)
            return found
    except OSError as error:
        raise SettingsError(f"LISTEN_FDS: descriptor {descriptor} is no socket ({error.strerror})") from error
    raise SettingsError(f"LISTEN_FDS: descriptor {descriptor} is not a listening stream socket")


def _is_local(listening: socket.socket) -> bool:
    if listening.family == socket.AF_UNIX:
        return True
    return ipaddress.ip_address(listening.getsockname()[0].partition("%")[0]).is_loopback


def check_restart(before: Config, config: Config) -> None:
    """Raise ``SettingsError`` if a new process could not listen on its address or write its store.

    Parameters
    ----------
    before: the configuration in use; what stays as it is has been checked.
    config: the configuration of the new process.
    """
    # The port in use is free when the sockets are closed, for another host, too.
    found = [check_address(config)] if config.port != before.port else []
    if config.store not in (before.store, "memory://"):
        found.append(check_store(config.store))
    for finding in found:
        if finding.level != "ok":
            raise SettingsError(str(finding))


def restart_in_place(descriptors: Sequence[int], config: Config) -> NoReturn:
    """Replace this process by a new one with the same command, which inherits the sockets.

    Parameters
    ----------
    descriptors: of the listening sockets; everything else of this process must be closed.
    config: the configuration that the sockets were opened for.
    """
    # Copied out of the way first: a socket may have the number that another one gets.
    copies: list[int] = []
    for descriptor in descriptors:
        copy = os.dup(descriptor)
        while copy < _ABOVE:
            copy = os.dup2(copy, _ABOVE + len(copies), inheritable=False)
        copies.append(copy)
    for number, copy in enumerate(copies):
        os.dup2(copy, FIRST + number, inheritable=True)
    os.environ |= {"LISTEN_FDS": str(len(copies)), "LISTEN_PID": str(os.getpid()), _LISTEN: config.listen}
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(sys.executable, sys.orig_argv)
