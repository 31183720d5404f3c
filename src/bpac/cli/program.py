"""The command line. Results go to standard output, everything else to standard error."""

import argparse
import importlib
import sys
from collections.abc import Sequence

from bpac import __version__
from bpac.cli.output import warn
from bpac.errors import BpacError, InputError, MissingExtra

FAILED, WRONG_USAGE = 1, 2
DESCRIPTION = "Answer with a fast, cheap LLM where that is safe enough, and ask the slow, expensive one elsewhere."
EPILOG = "bpac COMMAND --help describes a command and its options."
# Each command has the module of its name. Only the module of the command that is called is imported, so that a command
# works without what the others need; the list of all commands needs every module.
COMMANDS = (
    "demo",
    "init",
    "doctor",
    "serve",
    "status",
    "switch",
    "export",
    "audit",
    "warm",
    "backup",
    "archive",
    "games",
    "replay",
    "validate",
    "reproduce",
    "import",
    "collect",
    "grade",
    "table",
    "chain",
    "graders",
)
# ``import`` is a keyword, so its module has another name.
MODULES = {"import": "import_logs"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code: 0 fine, 1 failed, 2 wrong usage or an extra that is not installed."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    command = next((word for word in words if not word.startswith("-")), None)
    try:
        parsed = build_parser(command).parse_args(words)
        result: int = parsed.run(parsed)
    except (InputError, MissingExtra) as error:
        warn([str(error)])
        return WRONG_USAGE
    except (BpacError, OSError) as error:
        warn([str(error)])
        return FAILED
    except KeyboardInterrupt:
        print("bpac: stopped", file=sys.stderr)
        return FAILED
    return result


def build_parser(command: str | None = None) -> argparse.ArgumentParser:
    """The parser of the command line.

    Parameters
    ----------
    command: the command that is called; only its module is imported. All commands are added if it is not one of them.
    """
    parser = argparse.ArgumentParser(prog="bpac", description=DESCRIPTION, epilog=EPILOG)
    parser.add_argument("--version", action="version", version=f"bpac {__version__}", help="print the version and exit")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for name in [command] if command in COMMANDS else COMMANDS:
        importlib.import_module(f"bpac.cli.commands.{MODULES.get(name, name)}").add_command(commands)
    for listed in commands._choices_actions:
        # The line in the list of commands is also the first sentence of the command's own help.
        about = listed.help or ""
        commands.choices[listed.dest].description = f"{about[:1].upper()}{about[1:]}."
    return parser
