"""``python -m bpac.local``: serve the small model of this package until interrupted."""

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
    """Serve the model and print its address. Exit code: 0 fine, 1 failed, 2 wrong usage, or no extra."""
    parser = argparse.ArgumentParser(prog=PROGRAM, description="Serve a small language model until interrupted.")
    model = "GGUF file of the model (default: the model in this package)"
    parser.add_argument("--model", type=Path, default=MODEL, metavar="FILE", help=model)
    parser.add_argument("--port", type=int, default=0, help="port to listen on (default: any free port)")
    parser.add_argument("--slots", type=int, default=4, metavar="N", help="number of concurrent requests (default: 4)")
    context = "largest number of tokens of a chat, including the answer (default: 512)"
    parser.add_argument("--context", type=int, default=512, metavar="N", help=context)
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="number of processor threads (default: 1)")
    options = parser.parse_args(arguments)
    try:
        _serve(options)
    except (BpacError, OSError) as error:
        sys.stderr.write(f"{PROGRAM}: {error}\n")
        return WRONG_USAGE if isinstance(error, InputError | MissingExtra) else FAILED
    return FINE


def _serve(options: argparse.Namespace) -> None:
    stopped = threading.Event()
    before = {number: signal.signal(number, lambda *_: stopped.set()) for number in (signal.SIGINT, signal.SIGTERM)}
    fields = ("model", "port", "slots", "context", "threads")
    try:
        with LocalServer(**{name: getattr(options, name) for name in fields}) as server:
            sys.stdout.write(f"{server.base_url}\n")
            sys.stdout.flush()
            stopped.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


if __name__ == "__main__":
    sys.exit(main())
