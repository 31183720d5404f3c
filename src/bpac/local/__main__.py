"""Serve the local model until interrupted: ``python -m bpac.local``."""

import argparse
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from bpac.errors import BpacError, InputError
from bpac.local.server import MODEL, LocalServer

PROGRAM = "python -m bpac.local"
FINE, FAILED, WRONG_USAGE = 0, 1, 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the options, serve, print the address; returns the exit code: 0 fine, 1 failed, 2 wrong usage."""
    parser = argparse.ArgumentParser(prog=PROGRAM, description="Serve the local model until interrupted.")
    parser.add_argument("--model", type=Path, default=MODEL, help="a GGUF file; the model of this package if not given")
    parser.add_argument("--port", type=int, default=0, help="0 for any free one")
    parser.add_argument("--slots", type=int, default=4, help="requests answered at the same time")
    parser.add_argument("--context", type=int, default=512, help="tokens of a chat, answer included")
    parser.add_argument("--threads", type=int, default=1, help="processor threads")
    options = parser.parse_args(arguments)
    try:
        _serve(options)
    except (BpacError, OSError) as error:
        sys.stderr.write(f"{PROGRAM}: {error}\n")
        return WRONG_USAGE if isinstance(error, InputError) else FAILED
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
