"""The command ``demo``: a gateway in front of a small local model, and a client that sends it questions."""

import argparse
import json
import sys
from pathlib import Path

from bpac.errors import MissingExtra

FINE, INTERRUPTED = 0, 130
DIRECTORY = Path("bpac-demo")
QUESTIONS = 10_000


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the command line."""
    demo = commands.add_parser(
        "demo",
        help="run a gateway in front of a small local model, which answers at once or after thinking, and send it "
        "questions",
    )
    demo.add_argument(
        "--once",
        action="store_true",
        help="end with a summary after the questions; without it, the demo goes on slowly until Ctrl-C",
    )
    demo.add_argument(
        "--scripted", action="store_true", help="use scripted models, with random answers, instead of the local model"
    )
    demo.add_argument(
        "--questions",
        type=int,
        default=QUESTIONS,
        metavar="N",
        help=f"number of questions that are sent as fast as the models answer (default: {QUESTIONS}); the local "
        "model's effort dial is sent a fifth as many after them",
    )
    demo.add_argument(
        "--port",
        type=int,
        metavar="P",
        help="port of the gateway (default: 8800, or any free port if that is in use)",
    )
    demo.add_argument(
        "--dir",
        type=Path,
        default=DIRECTORY,
        help=f"directory for the files of the demo; those of an earlier demo are replaced (default: {DIRECTORY})",
    )
    demo.add_argument("--json", action="store_true", help="print one JSON object instead of text")
    demo.set_defaults(run=_demo)


def _demo(options: argparse.Namespace) -> int:
    # Imported here, because the list of all commands must work without the extra.
    try:
        from bpac.demo.demo import Demo  # noqa: PLC0415
    except (MissingExtra, ModuleNotFoundError) as error:
        # Whichever package is missed first, this extra has them all.
        raise MissingExtra(error.name or "a package", "demo") from error
    demo = Demo(options.dir, options.questions, options.once, options.scripted, options.port)
    # Without --once, Ctrl-C is how a demo ends.
    stopped = INTERRUPTED if options.once else FINE
    try:
        report = demo.run()
    except KeyboardInterrupt:
        sys.stderr.write("bpac: stopped before any question was answered, so there is no report\n")
        return stopped
    sys.stdout.write(f"{json.dumps(report.to_json()) if options.json else report}\n")
    return FINE if report.complete else stopped
