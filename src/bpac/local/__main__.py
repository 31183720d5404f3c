"""Serve the local model until interrupted: ``python -m bpac.local``."""

import argparse
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from bpac.errors import BpacError, InputError, MissingExtra
from bpac.local.server import MODEL, LocalServer

PROGRAM = "python -m bpac.local"
FINE, FAILED, WRONG_USAGE = 0, 1, 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until a signal; the exit code is 0 (fine), 1 (failed) or 2 (wrong usage, or the extra is missing)."""
    parser = argparse.ArgumentParser(prog=PROGRAM, description="Serve the local model until interrupted.")
    given = "GGUF file to serve (default: the model that comes with bpac)"
    parser.add_argument("--model", type=Path, default=MODEL, metavar="FILE", help=given)
    parser.add_argument("--port", type=int, default=0, help="port to listen on; 0 chooses a free one (default: 0)")
    parser.add_argument("--slots", type=int, default=4, help="requests answered at the same time (default: 4)")
    parser.add_argument("--context", type=int, default=512, help="tokens per chat, answer included (default: 512)")
    parser.add_argument("--threads", type=int, default=1, help="number of processor threads (default: 1)")
    options = parser.parse_args(arguments)
    try:
        _serve(options)
    except (BpacError, OSError) as error:
        sys.stderr.write(f"{PROGRAM}: {error}\n")
        return WRONG_USAGE if isinstance(error, InputError | MissingExtra) else FAILED
    return FINE


def _serve(options: argparse.Namespace) -> None:
    over = threading.Event()
    before = {number: signal.signal(number, lambda *_: over.set()) for number in (signal.SIGINT, signal.SIGTERM)}
    fields = ("model", "port", "slots", "context", "threads")
    try:
        with LocalServer(**{name: getattr(options, name) for name in fields}) as server:
            sys.stdout.write(f"{server.base_url}\n")
            sys.stdout.flush()
            over.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


if __name__ == "__main__":
    sys.exit(main())
