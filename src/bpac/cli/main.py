"""The command line. Results go to standard output, everything else to standard error."""

import argparse
import importlib
import sys
from collections.abc import Sequence

from bpac import __version__
from bpac.errors import BpacError, InputError, MissingExtra

FAILED, WRONG_USAGE = 1, 2
# The commands, by the module that adds them. A module is imported for its own commands only, and for the list of all.
FAMILIES = {
    "bpac.cli.replay": ("replay",),
    "bpac.cli.validate": ("validate",),
    "bpac.cli.reproduce": ("reproduce",),
    "bpac.cli.collect": ("collect", "grade", "table", "chain"),
    "bpac.cli.graders": ("graders",),
    "bpac.cli.gateway": ("serve", "status", "export", "audit"),
    "bpac.cli.demo": ("demo",),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code: 0 fine, 1 failed, 2 wrong usage or an extra that is not installed."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    command = next((word for word in words if not word.startswith("-")), None)
    try:
        parsed = build_parser(command).parse_args(words)
        result: int = parsed.run(parsed)
    except (InputError, MissingExtra) as error:
        print(f"bpac: {error}", file=sys.stderr)
        return WRONG_USAGE
    except (BpacError, OSError) as error:
        print(f"bpac: {error}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        print("bpac: stopped", file=sys.stderr)
        return FAILED
    return result


def build_parser(command: str | None = None) -> argparse.ArgumentParser:
    """The parser of the command line.

    Parameters
    ----------
    command: the command that is called, to leave out those that other modules add; all commands if it is unknown.
    """
    parser = argparse.ArgumentParser(prog="bpac", description="Spend LLM thinking only where it matters.")
    parser.add_argument("--version", action="version", version=f"bpac {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for module in [module for module, names in FAMILIES.items() if command in names] or FAMILIES:
        importlib.import_module(module).add_commands(commands)
    return parser
