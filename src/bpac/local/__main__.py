"""Serve the local model until interrupted: ``python -m bpac.local``."""

import argparse
import signal
import sys
import threading
from pathlib import Path

from bpac.local.server import MODEL, LocalServer


def main() -> None:
    """Read the options, serve, print the address."""
    parser = argparse.ArgumentParser(
        prog="python -m bpac.local", description="Serve the local model until interrupted."
    )
    parser.add_argument("--model", type=Path, default=MODEL, help="a GGUF file; the model of this package if not given")
    parser.add_argument("--port", type=int, default=0, help="0 for any free one")
    parser.add_argument("--slots", type=int, default=4, help="requests answered at the same time")
    parser.add_argument("--context", type=int, default=512, help="tokens of a chat, answer included")
    parser.add_argument("--threads", type=int, default=1, help="processor threads")
    options = parser.parse_args()
    over = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: over.set())
    with LocalServer(
        model=options.model, port=options.port, slots=options.slots, context=options.context, threads=options.threads
    ) as server:
        sys.stdout.write(f"{server.base_url}\n")
        sys.stdout.flush()
        over.wait()


if __name__ == "__main__":
    main()
