"""The process that a ``GatewayProcess`` runs: ``bpac serve`` that also ends when its standard input does.

It does so when the demo dies, however that dies: no gateway is left behind.
"""

import os
import signal
import sys
import threading

from bpac.errors import BpacError
from bpac.gateway.config.file import load_config
from bpac.gateway.server import serve
from bpac.gateway.telemetry.logs import log_as_json


def main(config: str) -> int:
    """Serve a configuration; the exit code of the process."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        log_as_json("info")
        return 0 if serve(load_config(config)) else 1
    except (BpacError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 1


def _end_with_parent() -> None:
    os.read(sys.stdin.fileno(), 1)  # nothing is ever sent: it returns at the end
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
