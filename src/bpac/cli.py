"""The command line. Results go to standard output, everything else to standard error."""

import argparse
import sys
from collections.abc import Sequence

from bpac import __version__
from bpac.collect_cli import add_commands as add_collect_commands
from bpac.demo.commands import add_command as add_demo_command
from bpac.errors import BpacError, InputError
from bpac.gateway.commands import add_commands as add_gateway_commands
from bpac.graders_cli import add_commands as add_graders_command
from bpac.replay_cli import add_commands as add_replay_commands

FAILED, WRONG_USAGE = 1, 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code: 0 fine, 1 failed, 2 wrong usage."""
    parsed = build_parser().parse_args(arguments)
    try:
        result: int = parsed.run(parsed)
    except InputError as error:
        print(f"bpac: {error}", file=sys.stderr)
        return WRONG_USAGE
    except (BpacError, OSError) as error:
        print(f"bpac: {error}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        print("bpac: stopped", file=sys.stderr)
        return FAILED
    return result


def build_parser() -> argparse.ArgumentParser:
    """All commands and their options."""
    parser = argparse.ArgumentParser(prog="bpac", description="Spend LLM thinking only where it matters.")
    parser.add_argument("--version", action="version", version=f"bpac {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    add_replay_commands(commands)
    add_collect_commands(commands)
    add_graders_command(commands)
    add_gateway_commands(commands)
    add_demo_command(commands)
    return parser
