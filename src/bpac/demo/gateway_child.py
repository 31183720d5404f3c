"""The process that a ``GatewayProcess`` runs: ``bpac serve`` that also ends when its standard input does.

It does so when the demo dies, however that dies: no gateway is left behind.
"""

import argparse
import os
import signal
import sys
import threading

from bpac.errors import BpacError
from bpac.gateway.commands import add_commands


def main(config: str) -> int:
    """Serve a configuration; the exit code of the command."""
    parser = argparse.ArgumentParser()
    add_commands(parser.add_subparsers())
    options = parser.parse_args(["serve", config])
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        result: int = options.run(options)
    except (BpacError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return result


def _end_with_parent() -> None:
    os.read(sys.stdin.fileno(), 1)  # nothing is ever sent: it returns at the end
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
