"""The demo's command."""

import argparse
import json
import sys
from pathlib import Path

from bpac.errors import MissingExtra

FINE, INTERRUPTED = 0, 130
DIRECTORY = Path("bpac-demo")
QUESTIONS = 10_000


def add_commands(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add demo to the command line."""
    demo = commands.add_parser(
        "demo", help="run a gateway in front of a real pair of small models and ask it some thousand questions"
    )
    demo.add_argument("--once", action="store_true", help="end with a summary, and not only at Ctrl-C")
    demo.add_argument("--scripted", action="store_true", help="a scripted pair of models, not the local one")
    demo.add_argument("--questions", type=int, default=QUESTIONS, metavar="N", help=f"how many ({QUESTIONS})")
    demo.add_argument("--port", type=int, metavar="P", help="of the gateway; 8800, or a free one, if not given")
    demo.add_argument(
        "--dir", type=Path, default=DIRECTORY, help=f"where its files go ({DIRECTORY}); an earlier demo's are replaced"
    )
    demo.add_argument("--json", action="store_true", help="one JSON object on standard output")
    demo.set_defaults(run=_demo)


def _demo(options: argparse.Namespace) -> int:
    # Only here: no other command needs what it imports.
    try:
        from bpac.demo.demo import Demo  # noqa: PLC0415
    except MissingExtra:
        raise
    except ModuleNotFoundError as error:
        raise MissingExtra(error.name or "a package", "demo") from error
    demo = Demo(options.dir, options.questions, options.once, options.scripted, options.port)
    # Ctrl-C is how a demo ends, unless it was to end by itself.
    stopped = INTERRUPTED if options.once else FINE
    try:
        report = demo.run()
    except KeyboardInterrupt:
        sys.stderr.write("bpac: stopped without a report\n")
        return stopped
    sys.stdout.write(f"{json.dumps(report.to_json()) if options.json else report}\n")
    return FINE if report.complete else stopped
