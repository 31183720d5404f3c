"""Run one process of a gateway: the supervisor calls this with what the process inherits, as JSON."""

import json
import sys

from bpac.errors import BpacError
from bpac.gateway.telemetry.logs import log_as_json
from bpac.gateway.workers.front.server import run_front
from bpac.gateway.workers.owner.server import check, run_owner
from bpac.gateway.workers.processes import Inherited


def main(role: str, values: str, level: str) -> int:
    """Run a process until it stops; its exit code."""
    log_as_json(level)
    try:
        if role == "check":
            return 0 if check(values) else 1
        told = json.loads(values)
        inherited = Inherited(**{**told, "sockets": tuple(told["sockets"])})
        return 0 if (run_owner if role == "owner" else run_front)(inherited) else 1
    except BpacError as error:
        sys.stderr.write(f"bpac: {error}\n")
        return 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4]))
