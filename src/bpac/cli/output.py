"""Output of commands: results on standard output, warnings on standard error."""

import argparse
import json
import sys
from collections.abc import Iterable, Mapping
from typing import Any


def add_json_option(parser: argparse.ArgumentParser) -> None:
    """Add the option ``--json``."""
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of text")


def print_report(options: argparse.Namespace, report: Mapping[str, Any], lines: Iterable[str]) -> None:
    """Print the report as one JSON object if ``--json`` was given, else as lines of text."""
    sys.stdout.write((json.dumps(report) if options.json else "\n".join(map(printable, lines))) + "\n")


def warn(lines: Iterable[str]) -> None:
    """Print lines to standard error."""
    sys.stderr.writelines(f"bpac: {printable(line)}\n" for line in lines)


def counted(number: int, noun: str, plural: str = "") -> str:
    """A number of things.

    Parameters
    ----------
    number: how many there are.
    noun: the word for one of them.
    plural: the word for several (default: the noun with an s).

    >>> counted(1, "entry", "entries"), counted(10_000, "round")
    ('1 entry', '10,000 rounds')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def printable(line: str) -> str:
    r"""A line whose control characters are escaped: callers choose the names of segments, and terminals obey codes.

    >>> printable("Zürich \x1b[2J\n0 rounds")
    'Zürich \\x1b[2J\\n0 rounds'
    """
    if line.isprintable():
        return line
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in line)
