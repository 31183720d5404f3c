"""Ports for servers that tests start in processes of their own."""

import os
import random
import re
import socket

# Below the ports that the system gives to outgoing connections and to servers without a port of their own (32768 on).
FIRST, SHARE, SHARES = 10_000, 1000, 22
_given: set[int] = set()


def free_port() -> int:
    """A port that nothing listens on, and that nothing else gets before its server listens or while it is away.

    Processes that run tests side by side choose from different ports, and none gives the same port twice.
    """
    worker = int(re.sub(r"\D", "", os.environ.get("PYTEST_XDIST_WORKER", "")) or 0)
    first = FIRST + SHARE * (worker % SHARES)
    while True:
        port = random.SystemRandom().randrange(first, first + SHARE)
        with socket.socket() as found:
            try:
                found.bind(("127.0.0.1", port))
            except OSError:
                continue
        if port not in _given:
            _given.add(port)
            return port
