"""The process that a ``GatewayProcess`` starts: ``bpac serve`` that also ends when its standard input is closed.

The operating system closes it when the demo ends in any way, even by SIGKILL, so that no gateway keeps running.
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
    """Run the gateway of a configuration file and return the exit code."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        log_as_json("info")
        return 0 if serve(load_config(config)) else 1
    except (BpacError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 1


def _end_with_parent() -> None:
    os.read(sys.stdin.fileno(), 1)  # nothing is ever written to it: this returns when it is closed
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
